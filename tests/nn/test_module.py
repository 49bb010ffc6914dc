"""Module: registering, finding, calling with hooks, state, conversion, copies and how it prints."""

import copy
import gc
import inspect
import pickle
import warnings
import weakref

import pytest

import cresset
from cresset import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.act = nn.ReLU()
        self.second = nn.Linear(3, 2)

    def forward(self, x):
        return self.second(self.act(self.first(x)))


def rename_old(module, state, *_):
    state["weight"] = state.pop("old")
    module.renamed = True


class Statistic(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", cresset.zeros(2))
        self.register_buffer("scratch", cresset.ones(1), persistent=False)
        self.marked = nn.Buffer(cresset.full((1,), 3.0))


class TestAttributes:
    def test_parameters_are_found_in_the_order_of_assignment(self):
        names = [name for name, _ in Mlp().named_parameters()]
        assert names == ["first.weight", "first.bias", "second.weight", "second.bias"]

    def test_assignment_before_init_is_refused(self):
        class Early(nn.Module):
            def __init__(self, what):
                self.value = what
                super().__init__()

        with pytest.raises(AttributeError, match="cannot assign module before Module.__init__"):
            Early(nn.ReLU())
        with pytest.raises(AttributeError, match="cannot assign parameters before Module.__init__"):
            Early(nn.Parameter(cresset.ones(1)))
        assert Early(3).value == 3

    def test_a_parameter_gives_way_to_none_but_not_to_a_tensor(self):
        layer = nn.Linear(2, 2)
        with pytest.raises(TypeError, match=r"cannot assign 'torch\.(cuda\.)?FloatTensor' as parameter 'weight'"):
            layer.weight = cresset.ones(2, 2)
        layer.weight = None
        assert layer.weight is None and [name for name, _ in layer.named_parameters()] == ["bias"]

    def test_a_name_belongs_to_one_kind_only(self):
        module = nn.Module()
        module.x = 3
        module.x = nn.ReLU()
        assert "x" in module._modules and "x" not in module.__dict__
        module.x = nn.Parameter(cresset.ones(1))
        assert "x" in module._parameters and "x" not in module._modules

    def test_buffers_stay_buffers_when_reassigned(self):
        module = Statistic()
        module.kept = cresset.ones(2)
        assert module._buffers["kept"].tolist() == [1.0, 1.0]
        with pytest.raises(TypeError, match="cannot assign 'int' as buffer 'kept'"):
            module.kept = 3

    def test_what_is_missing_is_named(self):
        with pytest.raises(AttributeError, match="'Mlp' object has no attribute 'third'"):
            Mlp().third
        with pytest.raises(NotImplementedError, match='Module \\[Module\\] is missing the required "forward" function'):
            nn.Module()(1)

    def test_deleting(self):
        model = Mlp()
        del model.act, model.first.bias
        assert [name for name, _ in model.named_modules()] == ["", "first", "second"]
        assert [name for name, _ in model.first.named_parameters()] == ["weight"]

    @pytest.mark.parametrize("name, error", [("a.b", KeyError), ("", KeyError), (1, TypeError), ("forward", KeyError)])
    def test_bad_names_are_refused(self, name, error):
        model = Mlp()
        for register in (model.register_parameter, model.register_buffer, model.add_module):
            with pytest.raises(error):
                register(name, None)


class TestFinding:
    def test_shared_modules_and_parameters_come_once(self):
        model = Mlp()
        model.again, model.tied = model.first, model.second.weight
        assert len(list(model.parameters())) == 4
        assert len(list(model.named_parameters(remove_duplicate=False))) == 7
        assert len(list(model.modules())) == 4

    def test_by_dotted_path(self):
        model = nn.Sequential(Mlp(), nn.BatchNorm1d(2))
        assert model.get_submodule("0.first") is model[0].first and model.get_submodule("") is model
        assert model.get_parameter("0.second.bias") is model[0].second.bias
        assert model.get_buffer("1.running_mean") is model[1].running_mean
        model.set_submodule("0.act", nn.Tanh())
        assert isinstance(model[0].act, nn.Tanh)
        for wrong in ("0.nothing", "0.first.weight"):
            with pytest.raises(AttributeError):
                model.get_submodule(wrong)

    def test_apply_goes_from_the_inside_out(self):
        seen = []
        model = Mlp()
        assert model.apply(lambda m: seen.append(type(m).__name__)) is model
        assert seen == ["Linear", "ReLU", "Linear", "Mlp"]


class TestHooks:
    def test_forward_hooks_may_replace_arguments_and_result(self):
        layer = nn.Identity()
        before = layer.register_forward_pre_hook(lambda m, args: args[0] + 1)
        after = layer.register_forward_hook(lambda m, args, out: out * 10)
        assert layer(cresset.tensor(1.0)).item() == 20
        before.remove(), after.remove()
        assert layer(cresset.tensor(1.0)).item() == 1

    def test_keyword_arguments_reach_hooks_that_ask_for_them(self):
        class Add(nn.Module):
            def forward(self, x, by=0):
                return x + by

        layer, seen = Add(), []
        layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
        layer.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
        assert layer(1, by=5) == 7 and seen == [{"by": 6}]

    def test_prepended_hooks_come_first(self):
        layer, order = nn.Identity(), []
        layer.register_forward_hook(lambda *_: order.append("first registered"))
        layer.register_forward_hook(lambda *_: order.append("prepended"), prepend=True)
        layer(1)
        assert order == ["prepended", "first registered"]

    def test_a_hook_that_is_always_called_runs_after_an_error(self):
        class Fails(nn.Module):
            def forward(self, x):
                raise RuntimeError("on purpose")

        layer, seen = Fails(), []
        layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
        layer.register_forward_hook(lambda m, args, out: seen.append("not this"))
        with pytest.raises(RuntimeError, match="on purpose"):
            layer(1)
        assert seen == [None]

    def test_global_hooks_see_every_module(self):
        seen = []
        with nn.hooks.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)):
            Mlp()(cresset.zeros(1, 4))
        assert seen == ["Linear", "ReLU", "Linear", "Mlp"]
        Mlp()(cresset.zeros(1, 4))
        assert len(seen) == 4

    def test_full_backward_hooks_see_and_change_gradients(self):
        layer, seen = nn.Linear(2, 1, bias=False), []
        with cresset.no_grad():
            layer.weight.copy_(cresset.tensor([[2.0, 3.0]]))

        def hook(module, grad_input, grad_output):
            seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
            return (grad_input[0] * 10,)

        layer.register_full_backward_hook(hook)
        x = cresset.ones(1, 2, requires_grad=True)
        layer(x).sum().backward()
        assert seen == [([[2.0, 3.0]], [[1.0]])] and x.grad.tolist() == [[20.0, 30.0]]

    def test_backward_pre_hooks_change_what_arrives(self):
        layer = nn.Linear(2, 1, bias=False)
        layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 5,))
        layer(cresset.ones(1, 2)).sum().backward()
        assert layer.weight.grad.tolist() == [[5.0, 5.0]]

    def test_both_kinds_of_backward_hooks_are_refused(self):
        layer = nn.Linear(2, 1)
        layer.register_full_backward_hook(lambda *_: None)
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
            layer.register_backward_hook(lambda *_: None)


class TestState:
    def test_state_shares_memory_and_has_no_history(self):
        model = Mlp()
        state = model.state_dict()
        assert list(state) == ["first.weight", "first.bias", "second.weight", "second.bias"]
        assert not any(t.requires_grad for t in state.values())
        with cresset.no_grad():
            model.first.bias.fill_(7)
        assert state["first.bias"].tolist() == [7.0, 7.0, 7.0]

    def test_only_persistent_buffers_are_saved(self):
        assert list(Statistic().state_dict()) == ["kept", "marked"]

    def test_loading_gives_the_same_model(self):
        a, b, x = Mlp(), Mlp(), cresset.randn(3, 4)
        result = b.load_state_dict(a.state_dict())
        assert repr(result) == "<All keys matched successfully>"
        assert cresset.equal(a(x), b(x)) and a.first.weight is not b.first.weight

    def test_loading_leaves_nothing_to_the_garbage_collector(self):
        model = nn.Sequential(Mlp(), Mlp())
        state = copy.deepcopy(model).state_dict()
        gc.collect()
        model.load_state_dict(state)
        assert gc.collect() == 0

    def test_errors_name_every_key(self):
        state = Mlp().state_dict()
        state["extra"] = state.pop("second.bias")
        state["first.weight"] = cresset.zeros(3, 5)
        with pytest.raises(RuntimeError) as caught:
            Mlp().load_state_dict(state)
        assert str(caught.value) == (
            "Error(s) in loading state_dict for Mlp:\n"
            '\tMissing key(s) in state_dict: "second.bias". \n'
            '\tUnexpected key(s) in state_dict: "extra". \n'
            "\tsize mismatch for first.weight: copying a param with shape torch.Size([3, 5]) from checkpoint, "
            "the shape in current model is torch.Size([3, 4])."
        )

    def test_names_in_errors_are_escaped(self):
        with pytest.raises(RuntimeError, match=r"Unexpected key\(s\) in state_dict: .*\\x1b\[2J") as caught:
            Mlp().load_state_dict({"a\x1b[2J": cresset.ones(1)})
        assert "\x1b" not in str(caught.value)

    def test_not_strict_reports_instead(self):
        missing, unexpected = Mlp().load_state_dict({"extra": cresset.ones(1)}, strict=False)
        assert len(missing) == 4 and unexpected == ["extra"]

    def test_assigning_takes_the_tensors_themselves(self):
        model, state = Mlp(), {k: v.clone() for k, v in Mlp().state_dict().items()}
        model.load_state_dict(state, assign=True)
        assert (
            isinstance(model.first.bias, nn.Parameter) and model.first.bias.data_ptr() == state["first.bias"].data_ptr()
        )

    def test_hooks_around_saving_and_loading(self):
        model = Mlp()
        model.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(note=1))
        model.register_load_state_dict_pre_hook(lambda m, state, prefix, *_: state.pop("note", None))
        assert repr(model.load_state_dict(model.state_dict())) == "<All keys matched successfully>"

    def test_a_hook_before_loading_does_not_keep_its_module(self):
        model = Mlp()
        model.register_load_state_dict_pre_hook(rename_old)
        alive = weakref.ref(model)
        gc.disable()
        try:
            del model
            assert alive() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
    def test_a_hook_before_loading_goes_to_a_copy(self, again):
        model = nn.Linear(2, 1)
        model.register_load_state_dict_pre_hook(rename_old)
        copied = again(model)
        copied.load_state_dict({"old": cresset.tensor([[1.0, 2.0]]), "bias": cresset.zeros(1)})
        assert copied.weight.tolist() == [[1.0, 2.0]] and copied.renamed and not hasattr(model, "renamed")

    def test_extra_state_travels(self):
        class Counts(nn.Module):
            count = 0

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        a, b = Counts(), Counts()
        a.count = 5
        b.load_state_dict(a.state_dict())
        assert b.count == 5


class TestConversion:
    def test_dtype_changes_floats_only_and_keeps_identity(self):
        norm = nn.BatchNorm1d(2)
        weight = norm.weight
        assert norm.double() is norm and norm.weight is weight and weight.dtype is cresset.float64
        assert norm.running_mean.dtype is cresset.float64 and norm.num_batches_tracked.dtype is cresset.int64
        norm.to(cresset.bfloat16)
        assert weight.dtype is cresset.bfloat16
        with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
            norm.to(cresset.int32)

    def test_gradients_follow(self):
        layer = nn.Linear(2, 2)
        layer(cresset.ones(1, 2)).sum().backward()
        assert layer.double().weight.grad.dtype is cresset.float64

    def test_meta_and_back(self):
        layer = nn.Linear(2, 3).to("meta")
        assert layer.weight.is_meta
        assert layer.to_empty(device="cpu").weight.shape == (3, 2) and not layer.weight.is_meta
        assert isinstance(layer.weight, nn.Parameter)

    def test_training_mode_reaches_all(self):
        model = nn.Sequential(Mlp(), nn.Dropout())
        model.eval()
        assert not any(m.training for m in model.modules())
        assert all(m.training for m in model.train().modules())

    def test_freezing_and_clearing(self):
        model = Mlp()
        model(cresset.ones(1, 4)).sum().backward()
        model.zero_grad(set_to_none=False)
        assert all(p.grad.abs().sum() == 0 for p in model.parameters())
        model.zero_grad()
        assert all(p.grad is None for p in model.parameters())
        assert not any(p.requires_grad for p in model.requires_grad_(False).parameters())


class TestCopies:
    def test_deepcopy_is_independent(self):
        a = Mlp()
        b = copy.deepcopy(a)
        with cresset.no_grad():
            a.first.weight.zero_()
        assert (
            b.first.weight.abs().sum() > 0 and isinstance(b.first.weight, nn.Parameter) and b.first.weight.requires_grad
        )

    def test_pickling(self):
        a, x = Mlp(), cresset.ones(1, 4)
        b = pickle.loads(pickle.dumps(a))
        assert cresset.equal(a(x), b(x)) and isinstance(b.second.bias, nn.Parameter)

    def test_a_dropped_module_is_collected(self):
        model = Mlp()
        model.register_forward_hook(lambda m, args, out: None)
        model(cresset.ones(1, 4)).sum().backward()
        gone = weakref.ref(model.first.weight)
        del model
        gc.collect()
        assert gone() is None


def test_printing_nests_and_shows_extra_lines():
    class Described(Mlp):
        def extra_repr(self):
            return "one\ntwo"

    assert repr(Described()) == (
        "Described(\n  one\n  two\n  (first): Linear(in_features=4, out_features=3, bias=True)\n  (act): ReLU()\n"
        "  (second): Linear(in_features=3, out_features=2, bias=True)\n)"
    )


def test_lazy_layers_become_ordinary_ones():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    with pytest.raises(RuntimeError, match="uninitialized"):
        model[0].weight.shape
    model(cresset.randn(4, 5))
    assert type(model[0]) is nn.Linear and model[0].weight.shape == (3, 5) and type(model[0].weight) is nn.Parameter
    assert type(model[1]) is nn.BatchNorm1d and model[1].running_var.shape == (3,)


def test_modules_that_stand_in_two_places_come_once_or_twice():
    layer = nn.ReLU()
    net = nn.Sequential(layer, layer)
    assert len(list(net.modules())) == 2 and len(list(net.modules(remove_duplicate=False))) == 3


def test_a_call_has_a_signature():
    assert str(inspect.signature(nn.ReLU())) == "(*args, **kwargs)"


@pytest.mark.filterwarnings("ignore:Lazy modules", "ignore:.*weight_norm:FutureWarning")
def test_what_needs_a_shape_refuses_a_layer_without_one():
    for norm in (nn.utils.weight_norm, nn.utils.spectral_norm):
        with pytest.raises(ValueError, match="can't have uninitialized parameters"):
            norm(nn.LazyLinear(3))
    with pytest.raises(RuntimeError, match="uninitialized parameters 0.weight.*run a forward pass"):
        cresset.jit.script(nn.Sequential(nn.LazyLinear(3)))
