"""Standing in for torch, a class says that it lives where PyTorch keeps it: the path that files and pickles name."""

import importlib
import warnings

import pytest

import cresset
from cresset.ops.registry import OBEYING
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
    "AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType", "ListType",
    "NoneType", "NumberType", "OptionalType", "RRefType", "StringType", "TensorType", "TupleType", "UnionType",
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


# What PyTorch keeps twice, or names otherwise, and programs do not ask for by these names.
ONE_HERE = {"linear", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d", "logsigmoid", "symeig",
            "adaptive_max_pool1d_with_indices", "sym_sqrt", "threshold"}  # fmt: skip


@pytest.mark.parametrize("space", [".", "functional", "linalg", "fft", "special", "nn.functional", "nn.init"])
def test_a_function_has_the_module_and_the_name_that_it_has_in_pytorch(space):
    compared = 0
    theirs, ours = (
        importlib.import_module(lib + ("" if space == "." else "." + space)) for lib in ("torch", "cresset")
    )
    for name in dir(ours):
        function = getattr(ours, name)
        if name.startswith("_") or not isinstance(function, OBEYING) or not hasattr(theirs, name) or name in ONE_HERE:
            continue
        other = getattr(theirs, name)
        assert (function.__module__, function.__name__) == (other.__module__, other.__name__), name
        compared += 1
    assert compared > 3


def test_a_method_has_the_name_that_it_has_in_pytorch_and_is_not_the_function():
    names = [name for name in dir(torch.Tensor) if isinstance(getattr(cresset.Tensor, name, None), OBEYING)]
    assert len(names) > 400
    for name in names:
        method = getattr(cresset.Tensor, name)
        assert method.__name__ == getattr(torch.Tensor, name).__name__ == name
        assert getattr(cresset, name, None) is not method
