"""Compiled functions and modules: how they are called, what they share with the module they were made of, copies,
freezing.
"""

import copy
import enum
import io
import pickle
import threading
from typing import Dict, List, Optional, Tuple

import pytest

import cresset
from cresset import nn


def typed(
    a: int = 1, b: float = 2.0, s: str = "x", xs: Optional[List[int]] = None, t: Optional[Tuple[int, str]] = None
):
    return a, b, s, xs, t


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)
        self.by = 3
        self.words = ["a"]

    def forward(self, x):
        return self.drop(self.norm(self.fc(x))) * self.by

    @cresset.jit.export
    def count(self) -> int:
        self.by += 1
        return self.by


class TestCalls:
    """Values at the door become what the signature says, or the call is refused with PyTorch's words."""

    @pytest.mark.parametrize(
        ("given", "want"),
        [
            ({}, (1, 2.0, "x", None, None)),
            ({"a": True}, (1, 2.0, "x", None, None)),
            ({"a": cresset.float32}, (6, 2.0, "x", None, None)),
            ({"b": 1}, (1, 1.0, "x", None, None)),
            ({"xs": (1, 2)}, (1, 2.0, "x", [1, 2], None)),
            ({"xs": cresset.ones(2, 3).size()}, (1, 2.0, "x", [2, 3], None)),
            ({"t": [1, "a"]}, (1, 2.0, "x", None, (1, "a"))),
        ],
    )
    def test_values_that_fit(self, given, want):
        assert cresset.jit.script(typed)(**given) == want

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"a": 2.5}, "Expected a value of type 'int' for argument 'a' but instead found type 'float'"),
            ({"s": 1}, "Expected a value of type 'str' for argument 's'"),
            ({"xs": [1.5]}, r"Expected a value of type 'Optional\[List\[int\]\]' for argument 'xs'"),
            ({"t": (1,)}, "for argument 't'"),
            ({"zz": 1}, "Unknown keyword argument 'zz' for operator 'typed'"),
        ],
    )
    def test_values_that_do_not(self, given, words):
        with pytest.raises(RuntimeError, match=words):
            cresset.jit.script(typed)(**given)

    def test_too_many_too_few_and_twice(self):
        f = cresset.jit.script(lambda_like)
        with pytest.raises(RuntimeError, match="expected at most 2 argument"):
            f(1, 2, 3)
        with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
            f()
        with pytest.raises(RuntimeError, match="multiple values for argument 'x'"):
            f(cresset.ones(1), x=cresset.ones(1))

    def test_a_list_that_a_program_changes_is_its_own(self):
        given = [1]
        assert cresset.jit.script(appended)(given) == [1, 2] and given == [1]

    def test_an_error_in_a_called_function_names_both_lines(self):
        with pytest.raises(RuntimeError) as caught:
            cresset.jit.script(calls_product)(cresset.ones(2, 3), cresset.ones(2, 3))
        text = str(caught.value)
        assert text.index("return product(a, b)") < text.index("return a @ b")


def lambda_like(x, y: int = 2):
    return x * y


def appended(xs: List[int]) -> List[int]:
    xs.append(2)
    return xs


def product(a, b):
    return a @ b


def calls_product(a, b):
    return product(a, b)


class TestModules:
    def test_parameters_and_buffers_are_those_of_the_module(self):
        module = Scaled()
        scripted = cresset.jit.script(module)
        assert scripted.fc.weight is module.fc.weight and list(scripted.state_dict()) == list(module.state_dict())
        scripted.load_state_dict({name: cresset.zeros_like(value) for name, value in module.state_dict().items()})
        assert module.fc.weight.abs().sum() == 0

    def test_train_and_eval_reach_the_program(self):
        scripted = cresset.jit.script(Scaled())
        x = cresset.randn(8, 2)
        assert not cresset.equal(scripted(x), scripted(x))
        scripted.eval()
        assert cresset.equal(scripted(x), scripted(x))

    def test_to_moves_all_of_it(self):
        scripted = cresset.jit.script(Scaled()).double().eval()
        assert scripted(cresset.ones(1, 2, dtype=cresset.float64)).dtype is cresset.float64

    def test_methods_change_attributes_and_python_sees_it(self):
        scripted = cresset.jit.script(Scaled())
        assert (scripted.count(), scripted.count(), scripted.by) == (4, 5, 5)
        scripted.by = 10
        assert scripted.count() == 11
        with pytest.raises(RuntimeError, match="type 'int' for attribute 'by'"):
            scripted.by = "a"

    def test_hooks_run_around_it(self):
        scripted, seen = cresset.jit.script(nn.Linear(2, 2)), []
        scripted.register_forward_hook(lambda module, args, result: seen.append(result.shape))
        scripted(cresset.ones(3, 2))
        assert seen == [(3, 2)]

    def test_a_deep_copy_has_tensors_of_its_own(self):
        scripted = cresset.jit.script(Scaled()).eval()
        copied = copy.deepcopy(scripted)
        x = cresset.ones(1, 2)
        assert cresset.equal(copied(x), scripted(x))
        with cresset.no_grad():
            copied.fc.weight.zero_()
        assert scripted.fc.weight.abs().sum() > 0 and copied.words is not scripted.words

    def test_pickle_is_refused_with_the_way_out(self):
        with pytest.raises(pickle.PickleError, match="save"):
            pickle.dumps(cresset.jit.script(nn.ReLU()))

    def test_it_prints_as_pytorchs(self):
        text = repr(cresset.jit.script(nn.Sequential(nn.Linear(2, 3), nn.ReLU())))
        assert text == (
            "RecursiveScriptModule(\n  original_name=Sequential\n  (0): RecursiveScriptModule(original_name=Linear)\n"
            "  (1): RecursiveScriptModule(original_name=ReLU)\n)"
        )

    def test_graph_code_and_schema_can_be_read(self):
        scripted = cresset.jit.script(Scaled())
        assert "def forward(self" in scripted.code and "prim::CallMethod" in str(scripted.graph)
        assert "prim::CallMethod" not in str(scripted.inlined_graph)
        assert str(scripted.forward.schema).startswith("forward(__torch__.")
        assert scripted._c._method_names()[:1] == ["forward"] and scripted.original_name == "Scaled"

    def test_threads_call_it_at_once(self):
        scripted, results = cresset.jit.script(Scaled()).eval(), []
        x = cresset.ones(4, 2)
        want = scripted(x)
        threads = [
            threading.Thread(target=lambda: results.append(all(cresset.equal(scripted(x), want) for _ in range(50))))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [True] * 4


class Changing(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = cresset.ones(2)
        self.view = self.seen.view(2)
        self.fixed = cresset.tensor([7.0])
        self.count = 3

    def forward(self, x):
        return self.seen + x + self.fixed + self.view + self.count

    @cresset.jit.export
    def change(self):
        self.seen[0] += 10
        self.count = 5


def doubled(x):
    return x * 2


def doubled_and_one(x):
    return doubled(x) + 1


def test_functions_can_be_compiled_with_what_they_call_inside():
    assert not cresset._C._jit_get_inline_everything_mode()
    cresset._C._jit_set_inline_everything_mode(True)
    try:
        kinds = [node.kind() for node in cresset.jit.script(doubled_and_one).graph.nodes()]
    finally:
        cresset._C._jit_set_inline_everything_mode(False)
    assert "prim::CallFunction" not in kinds and "aten::mul" in kinds
    assert cresset.jit.script(doubled_and_one)(cresset.ones(1)).tolist() == [3.0]


class TestFreezing:
    def test_the_numbers_stay_and_the_parameters_go(self):
        module = Scaled().eval()
        with cresset.no_grad():
            module.norm.running_mean.copy_(cresset.tensor([0.5, -1.0]))
            module.norm.running_var.copy_(cresset.tensor([2.0, 0.5]))
        frozen = cresset.jit.freeze(cresset.jit.script(module))
        x = cresset.randn(3, 2)
        cresset.testing.assert_close(frozen(x), module(x))
        assert list(frozen.parameters()) == [] and list(frozen.buffers()) == []
        kinds = [node.kind() for node in frozen.graph.all_nodes()]
        assert "aten::batch_norm" not in kinds and "aten::dropout" not in kinds and "prim::GetAttr" not in kinds

    def test_without_numerics_the_norm_stays(self):
        frozen = cresset.jit.freeze(cresset.jit.script(Scaled()).eval(), optimize_numerics=False)
        assert "aten::batch_norm" in [node.kind() for node in frozen.graph.all_nodes()]

    def test_what_is_preserved_can_be_changed(self):
        frozen = cresset.jit.freeze(cresset.jit.script(Scaled()).eval(), ["by", "count"])
        x = cresset.ones(1, 2)
        before = frozen(x)
        frozen.by = 6
        cresset.testing.assert_close(frozen(x), before * 2)
        assert frozen.count() == 7

    def test_what_a_preserved_method_changes_is_read_anew_with_all_in_its_memory(self):
        frozen = cresset._C._freeze_module(cresset.jit.script(Changing().eval())._c, ["change"])
        assert [frozen.hasattr(name) for name in ("seen", "view", "fixed", "count")] == [True, True, False, True]
        x = cresset.zeros(2)
        assert frozen.forward(x).tolist() == [12.0, 12.0]
        frozen.change()
        assert frozen.forward(x).tolist() == [34.0, 14.0]

    def test_the_frozen_module_can_take_the_place_of_the_other(self):
        scripted = cresset.jit.script(Scaled()).eval()
        x = cresset.ones(1, 2)
        before = scripted(x)
        scripted._c = cresset._C._freeze_module(scripted._c)
        cresset.testing.assert_close(scripted(x), before)
        assert not scripted._c.hasattr("by") and list(scripted.parameters()) == []
        with pytest.raises(NotImplementedError, match="freezeInterfaces=False is not supported"):
            cresset._C._freeze_module(scripted._c, freezeInterfaces=False)
        kept = cresset._C._freeze_module(cresset.jit.script(nn.Linear(2, 1)).eval()._c, preserveParameters=True)
        assert kept.hasattr("weight") and kept.hasattr("bias")

    def test_training_modules_and_python_modules_are_refused(self):
        with pytest.raises(RuntimeError, match="eval mode"):
            cresset.jit.freeze(cresset.jit.script(Scaled()))
        with pytest.raises(RuntimeError, match="ScriptModule"):
            cresset.jit.freeze(Scaled().eval())

    def test_optimize_for_inference_takes_a_module_in_training_mode(self):
        scripted = cresset.jit.script(Scaled())
        fast = cresset.jit.optimize_for_inference(scripted)
        x = cresset.randn(2, 2)
        cresset.testing.assert_close(fast(x), scripted.eval()(x))

    def test_a_frozen_module_can_be_saved(self, tmp_path):
        frozen = cresset.jit.freeze(cresset.jit.script(Scaled()).eval())
        frozen.save(tmp_path / "m.pt")
        x = cresset.randn(2, 2)
        assert cresset.equal(cresset.jit.load(tmp_path / "m.pt")(x), frozen(x))


class TestForks:
    def test_a_fork_runs_beside_and_wait_gives_its_result(self):
        assert cresset.jit.script(forked)(cresset.ones(2)).tolist() == [12.0, 12.0]

    def test_forks_inside_of_forks_do_not_starve(self):
        assert cresset.jit.script(many_forks)(cresset.ones(1), 40).tolist() == [40.0 * 12]


def slow_tenfold(x):
    return x * 10


def forked(x):
    later = cresset.jit.fork(slow_tenfold, x)
    y = x * 2
    return cresset.jit.wait(later) + y


def many_forks(x, n: int):
    pending: List[cresset.jit.Future[cresset.Tensor]] = []
    for _ in range(n):
        pending.append(cresset.jit.fork(forked, x))
    total = cresset.zeros(1)
    for one in pending:
        total = total + cresset.jit.wait(one)
    return total


def test_a_dict_crosses_both_ways():
    def doubled(table: Dict[str, int]) -> Dict[str, int]:
        return {key: 2 * value for key, value in table.items()}

    assert cresset.jit.script(doubled)({"a": 1}) == {"a": 2}


class Recipe:
    def __init__(self, factors: List[int], names: Dict[str, int]):
        self.factors = factors
        self.names = names


class Undescribed:
    def __init__(self, *anything):
        self.anything = anything


class Cook(nn.Module):
    def __init__(self):
        super().__init__()
        self.recipes = {n: Recipe([n, 2], {"n": n}) for n in (1, 2)}
        self.one = Recipe([7], {})
        self.unused = Undescribed(3)

    def forward(self, x: cresset.Tensor) -> cresset.Tensor:
        recipe = self.recipes[x.dim()]
        return x * recipe.factors[0] + recipe.names["n"] + self.one.factors[0]


def test_objects_of_plain_classes_are_attributes_and_are_saved():
    scripted, file = cresset.jit.script(Cook()), io.BytesIO()
    cresset.jit.save(scripted, file)
    file.seek(0)
    for module in (scripted, cresset.jit.load(file)):
        assert module(cresset.ones(2)).tolist() == [9.0, 9.0]
        assert module(cresset.ones(1, 1)).tolist() == [[11.0]]


def test_an_object_that_is_not_as_its_class_said_is_refused():
    for change in (lambda recipe: setattr(recipe, "factors", "many"), lambda recipe: delattr(recipe, "factors")):
        cook = Cook()
        change(cook.one)
        with pytest.raises(RuntimeError, match=r"a value of type '.*Recipe' for attribute 'one'"):
            cresset.jit.script(cook)


class Worded(nn.Module):
    def forward(self, x: str):
        return x + " inner"


class Wording(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Worded()

    def forward(self, x: str):
        return self.inner(x) + " outer"


def before(self, input: Tuple[str]) -> Tuple[str]:
    return (input[0] + " before",)


def behind(self, input: Tuple[str], output: str):
    return output + " behind"


class TestHooksInFiles:
    def test_hooks_run_after_loading_around_the_module_and_inside_of_it(self):
        module = Wording()
        for part in (module, module.inner):
            part.register_forward_pre_hook(before)
            part.register_forward_hook(behind)
            part.register_forward_hook(behind)
        expected = module("x")
        assert expected == "x before before inner behind behind outer behind behind"
        scripted = cresset.jit.script(module)
        for _ in range(2):  # what is loaded can be written again
            buffer = io.BytesIO()
            scripted.save(buffer)
            buffer.seek(0)
            scripted = cresset.jit.load(buffer)
            assert scripted("x") == expected and scripted.inner("y") == "y before inner behind behind"

    def test_two_hooks_of_one_name_are_refused(self):
        def behind(self, input: Tuple[str], output: str):
            return output + " other"

        module = Worded()
        module.register_forward_hook(behind)
        module.register_forward_hook(globals()["behind"])
        with pytest.raises(RuntimeError, match="Can't define hook: behind on class: .*Worded because a method or hook"):
            cresset.jit.script(module)


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


def others(color: Color):
    values: List[int] = []
    for one in Color:
        if one != color:
            values.append(one.value)
    return values


def test_an_enumeration_is_iterated_over_its_members():
    assert cresset.jit.script(others)(Color.GREEN) == [1, 3]


def purple():
    return Color.PURPLE


def test_a_member_that_an_enumeration_does_not_have():
    with pytest.raises(RuntimeError, match="enumeration 'Color' has no attribute 'PURPLE'"):
        cresset.jit.script(purple)
