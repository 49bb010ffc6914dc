"""The source inside of archives, parsed and compiled, never executed."""

import pytest

import cresset
from cresset.graph import types
from cresset.jit.compiling.archive import ArchiveCompiler

FILES = {
    "__torch__": '''class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = ["mean", ]
  weight : Tensor
  mean : Tensor
  training : bool
  scale : Final[float] = 2.
  layers : __torch__.shelf.ModuleList
  def forward(self: __torch__.Net,
    x: Tensor,
    times: Optional[int]=None) -> Tuple[Tensor, int]:
    layers = self.layers
    _0 = getattr(layers, "0")
    if torch.__isnot__(times, None):
      times0 = unchecked_cast(int, times)
      count = times0
    else:
      count = 1
    y = x
    for _1 in range(count):
      y = (_0).forward(y, )
    z = torch.add(torch.mul(y, CONSTANTS.c0), 1., alpha=2)
    _2 = (z, torch.len([1, 2, 3]))
    return _2
def helper(x: Tensor) -> Tensor:
  return torch.to(x, ops.prim.dtype(x))
class Color(Enum):
  RED = 1
class Pair(NamedTuple):
  x : Tensor
  n : int
''',
    "__torch__.shelf": '''class ModuleList(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  __annotations__["0"] = __torch__.shelf.Twice
class Twice(Module):
  def forward(self: __torch__.shelf.Twice, x: Tensor) -> Tensor:
    return torch.mul(x, 2)
''',
}  # fmt: skip


@pytest.fixture
def archive():
    return ArchiveCompiler(FILES.get, [cresset.ones(1)])


def test_a_class_has_its_attributes_parameters_and_constants(archive):
    net = archive.type("__torch__.Net")
    assert net.parameters == {"weight"} and net.buffers == {"mean"} and net.constants == {"scale": 2.0}
    assert str(net.attributes["layers"].attributes["0"]) == "__torch__.shelf.Twice"


def test_a_method_becomes_a_graph(archive):
    forward = archive.defined(archive.type("__torch__.Net").methods["forward"])
    forward.graph.lint()
    assert str(forward.schema) == "forward(__torch__.Net self, Tensor x, int? times=None) -> ((Tensor, int))"
    kinds = [node.kind() for node in forward.graph.all_nodes()]
    assert "prim::Loop" in kinds and "prim::CallMethod" in kinds and "aten::add" in kinds


def test_keyword_arguments_go_to_their_place_in_the_schema(archive):
    forward = archive.defined(archive.type("__torch__.Net").methods["forward"])
    assert forward.graph.findNode("aten::add").inputsAt(2).constant() == 2


def test_functions_enumerations_and_named_tuples_are_found(archive):
    assert (
        archive.defined(archive.function("__torch__.helper")).graph.findNode("aten::to").schema.overload_name == "dtype"
    )
    assert archive.type("__torch__.Color").value_type == types.IntType()
    assert archive.type("__torch__.Pair").fields == ("x", "n")


@pytest.mark.parametrize(
    "text, message",
    [
        ("def f(x):\n  return __import__('os').system('true')\n", "undefined value __import__"),
        ("def f(x):\n  return torch.no_such_operator(x)\n", "Unknown builtin op: aten::no_such_operator"),
        ("def f(x):\n  return CONSTANTS.c7\n", "has no constant c7"),
        ("def f(x) -> __torch__.Missing:\n  return x\n", "has no class __torch__.Missing"),
        ("def f(x):\n  return (((\n", "cannot be read as TorchScript"),
        ("def f(x):\n  return __torch__.f(x)\n", "called recursively"),
        ("def f(x):\n  return open('/etc/passwd')\n", "undefined value open"),
        ("def f(x):\n  return x.__class__\n", "a method cannot be used as a value"),
        (
            "def f(x):\n  return " + "(" * 3000 + "x" + ")" * 3000 + "\n",
            "cannot be read as TorchScript|nested too deeply",
        ),
    ],
)
def test_hostile_source_gets_an_error(text, message):
    with pytest.raises(RuntimeError, match=message):
        compiler = ArchiveCompiler({"__torch__": text}.get)
        compiler.defined(compiler.function("__torch__.f"))


def test_a_name_that_is_not_there_is_refused(archive):
    with pytest.raises(RuntimeError, match="has no class __torch__.Nothing"):
        archive.type("__torch__.Nothing")
    with pytest.raises(RuntimeError, match="has no function"):
        archive.function("__torch__.Net")


def test_the_object_of_a_method_may_have_another_name_than_self():
    text = """class Pair:
  a : int
  def __init__(this: __torch__.Pair,
    a: int) -> NoneType:
    this.a = a
    return None
  def more(this: __torch__.Pair, by: int) -> int:
    return torch.add(this.a, by)
def f(a: int) -> int:
  p = __torch__.Pair.__new__(__torch__.Pair)
  _0 = (p).__init__(a, )
  return (p).more(2, )
"""
    compiler = ArchiveCompiler({"__torch__": text}.get)
    assert set(compiler.type("__torch__.Pair").methods) == {"__init__", "more"}
    assert compiler.type("__torch__.Pair").static_methods == {}
