"""`cresset run script.py ARGS`: a program written for PyTorch runs on cresset, unmodified."""

import contextlib
import os
import runpy
import sys

from .. import standing_in
from . import CommandError


def run(script, arguments, module=False, command="run", around=None):
    """Run a script, or with `module` a module by name, with these arguments; its exit status. The program runs inside
    the context manager `around`.
    """
    if not module and not os.path.exists(script):
        hint = "; to run a module by its name, write -m before it" if not script.endswith(".py") else ""
        raise CommandError(f"{command}: there is no program {script!r}{hint}")
    sys.argv = [script, *arguments]
    folder = os.getcwd() if module else os.path.dirname(os.path.abspath(script))
    sys.path[: 0 if sys.flags.safe_path else 1] = [folder]  # where Python would have put it
    standing_in.install()
    standing_in.install_for_processes()
    try:
        with around or contextlib.nullcontext():
            if module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
    except SystemExit:
        raise
    except KeyboardInterrupt as error:
        show(error)
        return 130
    except ImportError as error:
        if module and error.name is None and "No module named" in str(error):
            raise CommandError(f"{command}: {error}") from None
        show(error)
        return 1
    except BaseException as error:
        show(error)
        return 1
    return 0


def show(error):
    """The program's traceback as if Python had run it: without the frames of this file and of runpy."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
