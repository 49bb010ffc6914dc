"""Standing in for torch, a class says that it lives where PyTorch keeps it: the path that files and pickles name."""

import importlib
import warnings

import pytest

from cresset.standing_in.homes import home_of

torch = pytest.importorskip("torch")

SPACES = """. nn nn.utils.rnn nn.utils.parametrize nn.parallel optim optim.lr_scheduler optim.swa_utils utils.data utils.data.distributed utils.checkpoint
utils.hooks autograd autograd.graph autograd.forward_ad amp cuda.amp distributions distributions.constraints distributions.transforms fx library
futures quasirandom overrides serialization testing utils._ordered_set utils.flop_counter nn.utils.prune nn.attention.flex_attention""".split()  # noqa: E501

# Where a class has another home here, and why it may: no file names it.
ELSEWHERE = {
    "CustomOpDef", "DeviceType", "DispatchKey", "Event", "FileCheck", "FunctionSchema", "Future", "Generator",
    "LinAlgError", "Node", "ScriptModule", "Value",
    "OpOverload", "ProfilerActivity", "SDPBackend", "StorageType",
    "tqdm",
}  # fmt: skip


def pairs(space):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (
            importlib.import_module(lib + ("" if space == "." else "." + space)) for lib in ("torch", "cresset")
        )
        for name in dir(theirs):
            kind, own = getattr(theirs, name, None), getattr(ours, name, None)
            if isinstance(kind, type) and kind.__module__.startswith("torch") and isinstance(own, type):
                yield name, kind, own


@pytest.mark.parametrize("space", SPACES)
def test_classes_live_where_pytorch_keeps_them(space):
    wrong = {}
    for name, kind, own in pairs(space):
        home = home_of(own.__module__, own.__qualname__) if own.__module__.startswith("cresset") else own.__module__
        if home != kind.__module__ and name not in ELSEWHERE:
            wrong[name] = (own.__module__, home, kind.__module__)
    assert not wrong
