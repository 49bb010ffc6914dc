"""`--run DIR` of `cresset train`: the record that `cresset report DIR` draws, as `fit` writes it."""

import contextlib
import os

import cresset
from cresset.train.records import Records

from . import CommandError


@contextlib.contextmanager
def recorded(options, name, model, optimizer, epochs):
    """Records of this run; without --run they go nowhere."""
    path = None
    if options.run is not None:
        path = os.path.join(options.run, "run.jsonl")
        if os.path.exists(path):
            raise CommandError(f"train {name}: {options.run} holds a run already; another folder starts a new one")
    records, reason = Records(path), "finished"
    records.write("start", model=type(model).__name__, parameters=sum(p.numel() for p in model.parameters()),
        optimizer=optimizer, epochs=epochs, seed=options.seed, device=str(options.device),
        cresset=cresset.__version__)  # fmt: skip
    try:
        yield records
    except BaseException as error:
        reason = "interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__
        raise
    finally:
        records.write("end", reason=reason)
        records.close()
    if path is not None:
        print(f"recorded {path}; `cresset report {options.run}` draws it")
