"""torch._C: the names of PyTorch's native module that programs use."""

import copy
import subprocess
import sys

import pytest

import cresset as torch


def test_current_autograd_node_is_the_node_that_backward_runs():
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda grad: seen.append((torch._C._current_autograd_node(), torch._C._current_graph_task_id())))
    node = y.grad_fn
    y.sum().backward()
    assert seen[0][0] is node and seen[0][1] >= 0
    assert torch._C._current_autograd_node() is None and torch._C._current_graph_task_id() == -1


def test_current_autograd_node_inside_a_nested_backward():
    seen = []

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                z = torch.ones(1, requires_grad=True).sin()
                z.register_hook(lambda g: seen.append(torch._C._current_autograd_node().name()))
                z.backward()
            seen.append(torch._C._current_autograd_node().name())
            return grad * 2

    Outer.apply(torch.ones(1, requires_grad=True)).backward()
    assert seen[0].startswith("Sin") and seen[1].startswith("Outer")


def test_current_autograd_node_is_none_after_a_backward_that_failed():
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert torch._C._current_autograd_node() is None


def test_log_api_usage_once_prints_each_event_once_when_asked_to():
    program = "import cresset; [cresset._C._log_api_usage_once(e) for e in ('one', 'two', 'one')]"
    for value, expected in (("1", "PYTORCH_API_USAGE one\nPYTORCH_API_USAGE two\n"), ("", "")):
        import os

        environment = {**os.environ, "PYTORCH_API_USAGE_STDERR": value}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
        )
        assert done.stderr == expected


def test_a_class_with_the_disabled_torch_function_is_not_kept_by_results():
    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    made = torch.ones(2).as_subclass(Plain)
    assert type(made) is Plain and type(made + 1) is torch.Tensor


class Doubles(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "seen"


class Count(torch.overrides.TorchFunctionMode):
    def __init__(self):
        self.types = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.types.append(types)
        return func(*args, **(kwargs or {}))


def test_disable_torch_function_hides_calls_from_subclasses_and_modes():
    x = torch.ones(2).as_subclass(Doubles)
    with Count() as count:
        with torch._C.DisableTorchFunction(), torch._C.DisableTorchFunctionSubclass():
            assert not torch._C._is_torch_function_enabled() and torch._C._is_torch_function_all_disabled()
            assert torch._C._len_torch_function_stack() == 1 and not torch._C._is_torch_function_mode_enabled()
            assert torch.add(x, 1).tolist() == [2.0, 2.0]
        assert count.types == [] and torch._C._is_torch_function_mode_enabled()
    assert torch.add(x, 1) == "seen" and torch._C._is_torch_function_enabled()


def test_disable_torch_function_subclass_hides_calls_from_subclasses_alone():
    x = torch.ones(2).as_subclass(Doubles)
    with Count() as count, torch._C.DisableTorchFunctionSubclass():
        results = torch.add(x, 1), x[0], torch.nn.functional.normalize(x, dim=0), x.grad
        enabled = torch._C._is_torch_function_mode_enabled(), torch._C._is_torch_function_enabled()
    assert [type(y) for y in results] == [torch.Tensor] * 3 + [type(None)] and results[0].tolist() == [2.0, 2.0]
    assert count.types == [()] * 4 and enabled == (True, False)


def test_excluding_autocasts_key_turns_autocast_off_and_on_again():
    a = torch.ones(2, 2)
    with torch.autocast("cpu"):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
            assert (a @ a).dtype == torch.float32
        assert (a @ a).dtype == torch.bfloat16


def test_excluding_another_key_says_what_there_is_instead():
    with pytest.raises(NotImplementedError, match="DispatchKey.AutogradCPU cannot be left out.*no_grad"):
        torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU))


def test_sets_of_dispatch_keys_are_sets():
    key = torch._C.DispatchKey
    both = torch._C.DispatchKeySet(key.CPU) | torch._C.DispatchKeySet(key.AutogradCPU)
    assert (
        both.has(key.CPU)
        and not both.has(key.CUDA)
        and (both - torch._C.DispatchKeySet(key.CPU)) == torch._C.DispatchKeySet(key.AutogradCPU)
    )
    assert (
        repr(both) == "DispatchKeySet(CPU, AutogradCPU)"
        and int(key.AutogradCPU) == 134
        and both.remove(key.CPU).add(key.CPU) == both
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("cpu", torch.float16), {"non_blocking": True}, (torch.device("cpu"), torch.float16, True, None)),
        ((torch.float16,), {}, (None, torch.float16, False, None)),
        ((torch.ones(1, dtype=torch.int8),), {}, (torch.device("cpu"), torch.int8, False, None)),
        ((), {"memory_format": torch.channels_last}, (None, None, False, torch.channels_last)),
        ((None, torch.int32), {}, (None, torch.int32, False, None)),
    ],
)
def test_parse_to_reads_the_arguments_of_to(args, kwargs, expected):
    assert torch._C._nn._parse_to(*args, **kwargs) == expected


def test_settings_of_executors_give_what_they_were():
    before = torch._C._jit_set_profiling_executor(False)
    assert torch._C._jit_set_profiling_executor(before) is False
    torch._C._jit_override_can_fuse_on_cpu(True)
    assert torch._C._jit_can_fuse_on_cpu()
    torch._C._jit_override_can_fuse_on_cpu(False)
    with pytest.warns(UserWarning, match="nvfuser is no longer supported"):
        torch._C._jit_set_nvfuser_enabled(True)


def test_functions_below_torch_and_nn_are_found():
    assert torch._C._VariableFunctions.relu(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert torch._C._nn.gelu(torch.zeros(1)).item() == 0.0
    with pytest.raises(AttributeError, match="no_such"):
        torch._C._nn.no_such


def test_an_overload_knows_its_operator_by_both_names():
    add = torch.ops.aten.add.Tensor
    assert add._overloadpacket is add.overloadpacket is torch.ops.aten.add


def test_gradients_through_rpc_are_said_not_to_be_there():
    from cresset.distributed import autograd

    assert autograd.is_available() is False


def test_outside_of_tracing_there_is_no_tracing_state():
    assert torch._C._get_tracing_state() is None


def test_number_of_interop_threads_is_set_once():
    program = (
        "import cresset as t\nassert t.get_num_interop_threads() >= 1\nt.set_num_interop_threads(3)\nassert "
        "t.get_num_interop_threads() == 3\n"
        "for bad in (3, 0, 1.5):\n    try: t.set_num_interop_threads(bad)\n    except RuntimeError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second, third = done.stdout.splitlines()
    assert "after" in first and "positive integer" in second and "expects an int, but got float" in third


def test_package_files_are_refused_in_words():
    with pytest.raises(NotImplementedError, match="hold Python code that runs when they are opened.*state_dict"):
        torch.package.PackageImporter("model.pt")
    with pytest.raises(NotImplementedError, match="PackageExporter\\('out.pt'\\)"):
        torch.package.PackageExporter("out.pt")


class TestNamesBesideTheNativeModule:
    def test_an_ordered_set_is_a_set_that_keeps_the_order(self):
        from cresset.utils._ordered_set import OrderedSet

        a = OrderedSet([3, 1, 3, 2])
        assert list(a) == [3, 1, 2] and list(reversed(a)) == [2, 1, 3] and a == {1, 2, 3}
        assert list(a | [9]) == [3, 1, 2, 9] and list(a - {1}) == [3, 2] and list(a.intersection([1, 2])) == [1, 2]
        assert (
            list(a.symmetric_difference([1, 7])) == [3, 2, 7]
            and a.issubset([1, 2, 3, 4])
            and a.pop() == 2
            and len(a) == 2
        )
        b = a.copy()
        b.update([5], [6])
        b.difference_update([3])
        assert list(b) == [1, 5, 6] and list(a) == [3, 1]
        with pytest.raises(KeyError):
            OrderedSet().pop()

    def test_alert_not_deterministic_follows_the_setting(self):
        from cresset._prims_common import alert_not_deterministic

        alert_not_deterministic("mine")
        try:
            torch.use_deterministic_algorithms(True)
            with pytest.raises(RuntimeError, match="mine does not have a deterministic implementation"):
                alert_not_deterministic("mine")
            torch.use_deterministic_algorithms(True, warn_only=True)
            with pytest.warns(UserWarning, match="mine does not have a deterministic implementation"):
                alert_not_deterministic("mine")
        finally:
            torch.use_deterministic_algorithms(False)

    def test_settings_of_the_code_generator_can_be_patched(self):
        config = torch._inductor.config
        with config.patch(max_autotune=True):
            assert config.max_autotune
        assert not config.max_autotune
        with pytest.raises(AttributeError, match="_inductor.config: there is no setting 'nope'"), config.patch(nope=1):
            pass

    def test_parts_of_a_tensors_text(self):
        x = torch.tensor([1.0, 2.5])
        assert torch._tensor_str._tensor_str(x, 0) == "[1.0000, 2.5000]"
        assert torch._tensor_str._add_suffixes("tensor(1", ["dtype=x"], 0, False) == "tensor(1, dtype=x)"
        assert torch._tensor_str._str_intern(x) == repr(x)

    def test_a_mask_in_its_added_form(self):
        mask = torch.tensor([True, False])
        assert torch.nn.functional._canonical_mask(mask, "m", None, "", torch.float32).tolist() == [-float("inf"), 0.0]
        assert (
            torch.nn.functional._none_or_dtype(mask) == torch.bool and torch.nn.functional._none_or_dtype(None) is None
        )
        with pytest.raises(RuntimeError, match="must be None or torch.Tensor"):
            torch.nn.functional._none_or_dtype(3)

    def test_tensors_are_grouped_by_device_and_dtype(self):
        a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.ones(2)
        groups = torch.optim.Optimizer._group_tensors_by_device_and_dtype(
            [[a, b, c], [None, None, None]], with_indices=True
        )
        lists, places = groups[torch.device("cpu"), torch.float32]
        assert (
            lists[0][0] is a and lists[0][1] is c and lists[1] == [None, None] and places == [0, 2] and len(groups) == 2
        )

    def test_the_questions_of_optimizers_of_other_packages(self):
        from cresset.utils import _foreach_utils as asked

        cpu, x = torch.device("cpu"), torch.ones(1)
        assert asked._has_foreach_support([x, None], cpu)
        assert not asked._has_foreach_support([torch.nn.Parameter(x)], cpu)
        assert not asked._device_has_foreach_support(torch.device("meta"))
        assert "cuda" in asked._get_foreach_kernels_supported_devices()
        assert "cpu" in asked._get_fused_kernels_supported_devices()
        assert len(asked._group_tensors_by_device_and_dtype([[x, x.double()]])) == 2

    def test_a_step_given_to_the_class_later_calls_hooks_once_it_is_patched(self):
        class Later(torch.optim.Optimizer):
            pass

        parameter, called = torch.nn.Parameter(torch.ones(1)), []
        Later.step = lambda self: called.append("step")
        later = Later([parameter], {})
        later.register_step_pre_hook(lambda *_: called.append("hook"))
        for _ in range(2):
            later._patch_step_function()
        later.step()
        assert called == ["hook", "step"]

    def test_a_step_is_recorded_only_when_differentiable(self):
        from cresset.optim.optimizer import _use_grad_for_differentiable

        class Mine(torch.optim.Optimizer):
            @_use_grad_for_differentiable
            def step(self):
                return torch.is_grad_enabled()

        for differentiable in (False, True):
            assert (
                Mine([torch.ones(1, requires_grad=True)], {"differentiable": differentiable}).step() is differentiable
            )

    def test_reductions_have_numbers(self):
        assert [torch.nn.functional._Reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
        with pytest.raises(ValueError, match="x is not a valid value for reduction"):
            torch.nn._reduction.get_enum("x")

    def test_indexing_inside_vmap_and_the_mode_for_it(self):
        from cresset._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

        x = torch.arange(12).reshape(3, 4)
        with TransformGetItemToIndex():
            assert torch.vmap(lambda i, j: x[i, j])(torch.arange(3), torch.arange(3)).tolist() == [0, 5, 10]

    def test_functional_has_torchs_functions(self):
        assert torch.functional.einsum is torch.einsum and set(torch.functional.__all__) <= set(dir(torch))

    def test_tags_are_kept_by_operators_of_ones_own(self):
        @torch.library.custom_op("names_test::twice", mutates_args=(), tags=[torch.Tag.pointwise])
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        assert torch.Tag.pointwise in torch.ops.names_test.twice.default.tags and int(torch.Tag.pointwise) == 16
        assert repr(torch.Tag.core) == "<Tag.core: 0>"

    def test_what_the_build_has_agrees_with_the_backends(self):
        assert (
            torch.has_mkl == torch.backends.mkl.is_available()
            and torch.has_openmp == torch.backends.openmp.is_available()
        )

    def test_the_number_of_the_worker_is_none_outside_of_one(self):
        from cresset.utils.data._utils import worker

        assert worker._worker_info is None

    def test_profiler_enabled_inside_a_profiler_only(self):
        assert not torch.autograd._profiler_enabled()
        with torch.profiler.profile():
            assert torch.autograd._profiler_enabled()

    def test_a_storage_without_a_type_is_one_of_floats(self):
        assert torch.Storage is torch.FloatStorage and torch.Storage(2).dtype == torch.float32

    def test_a_storage_knows_how_many_hold_it(self):
        x = torch.ones(3)
        address = x.untyped_storage()._cdata
        alone = torch._C._storage_Use_Count(address)
        view = x.view(3, 1)
        assert torch._C._storage_Use_Count(address) == alone + 1 and view.shape == (3, 1)
        del view
        assert torch._C._storage_Use_Count(address) == alone

    def test_there_is_no_agent_for_remote_calls(self):
        assert torch._C._distributed_rpc._is_current_rpc_agent_set() is False

    def test_the_call_of_modules_is_there_while_it_is_traced(self):
        from cresset.fx import _symbolic_trace

        assert _symbolic_trace._orig_module_call is torch.nn.Module.__call__


def test_operators_have_classes_that_programs_ask_for():
    packet = torch.ops.aten.add
    assert isinstance(packet, torch._ops.OpOverloadPacket) and isinstance(packet.Tensor, torch._ops.OpOverload)
    assert str(packet) == "aten.add" and copy.copy(packet) is packet


def test_the_arguments_of_a_transform_are_named_by_numbers():
    pick = torch._functorch.eager_transforms._slice_argnums
    assert pick("abc", (0, -1)) == ("a", "c") and pick("abc", 1) == ("b",) and pick("abc", 1, as_tuple=False) == "b"
    with pytest.raises(RuntimeError, match="must be int"):
        pick("abc", (0.0,))


def test_an_operator_may_return_its_argument_where_that_is_not_checked():
    @torch.library.custom_op("native_names::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    with torch._functorch.config.patch(check_custom_op_aliasing=False):
        assert same(torch.ones(1)) == 1
    with pytest.raises(RuntimeError, match="may not alias"):
        same(torch.ones(1))


def test_methods_with_an_underscore_do_what_the_public_ones_do():
    x = torch.tensor([[1 + 2j, 0]])
    assert x._conj().tolist() == x._conj_physical().tolist() == [[1 - 2j, 0]] and not x._is_zerotensor()
    sparse = x._to_sparse()
    assert sparse._dimI() == 2 and sparse._dimV() == 0 and sparse._to_dense().tolist() == x.tolist()
    assert torch.arange(4)[1:3].slice_inverse(torch.arange(4), 0, 1, 3).shape == (4,)
    half = torch.ones(1, dtype=torch.bfloat16)
    assert half._autocast_to_full_precision(False, True).dtype == torch.float32
    assert half.float()._autocast_to_reduced_precision(False, True, None, half.dtype).dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="MKLDNN"):
        half.to_mkldnn()
    assert half._neg_view().tolist() == torch._neg_view(half).tolist() == [-1.0] and not half._neg_view().is_neg()


def test_an_overload_takes_self_by_name():
    assert torch.ops.aten.add.Tensor(self=torch.ones(1), other=torch.ones(1)) == 2
    assert torch.ops.aten.neg(self=torch.ones(1)) == -1


def test_what_a_tensor_shows_is_said_and_not_changed():
    x = torch.ones(1, dtype=torch.complex64)
    torch._C._set_conj(x, False)
    torch._C._set_neg(x, False)
    with pytest.raises(NotImplementedError, match="conj"):
        torch._C._set_conj(x, True)
    with pytest.raises(NotImplementedError, match="neg"):
        torch._C._set_neg(x, True)


def test_a_function_without_pytorchs_wrapper_is_itself():
    from cresset._prims_common.wrappers import _maybe_remove_out_wrapper

    assert _maybe_remove_out_wrapper(torch.add) is torch.add


def test_tensors_are_compared_beside_their_elements():
    from cresset._subclasses.meta_utils import assert_eq, assert_metadata_eq

    x = torch.ones(2, 3)
    assert_metadata_eq(assert_eq, x, torch.zeros(2, 3))
    assert_metadata_eq(assert_eq, x.to_sparse(), torch.ones(2, 3).to_sparse())
    with pytest.raises(AssertionError):
        assert_metadata_eq(assert_eq, x, x.T.contiguous())


def test_the_older_vmap_is_vmap():
    assert torch._vmap_internals._vmap(lambda x: x.sum(), 1)(torch.ones(2, 3)).tolist() == [2.0, 2.0, 2.0]


def test_losses_of_the_native_names_take_a_reduction_as_a_number():
    x, classes = torch.tensor([[0.25, 0.5], [0.5, 0.125]]), torch.tensor([0, 1])
    assert torch._C._nn.nll_loss(x, classes, None, 0).tolist() == [-0.25, -0.125]
    assert torch._C._nn.nll_loss2d(x.view(1, 2, 2, 1), torch.tensor([[[0], [1]]]), None, 2).item() == -0.375
    assert torch._C._nn.mse_loss(x, x + 2, 2).item() == 16.0


def test_division_has_its_name_from_python_2():
    x = torch.tensor([3.0])
    assert x.__div__(2).item() == 1.5 and x.__idiv__(2) is x and x.item() == 1.5


def test_a_warning_is_given_once(recwarn):
    from cresset._dynamo.utils import disable_cache_limit, warn_once

    for _ in range(2):
        warn_once("this layer is slow")
    assert [str(warning.message) for warning in recwarn] == ["this layer is slow"]
    before = torch._dynamo.config.recompile_limit
    with disable_cache_limit():
        assert torch._dynamo.config.recompile_limit > 1000
    assert torch._dynamo.config.recompile_limit == before


def test_an_operator_gives_its_result_in_a_dtype_of_its_own():
    from cresset._higher_order_ops.out_dtype import out_dtype

    a = torch.full((1, 3), 100, dtype=torch.int8)
    assert out_dtype(torch.ops.aten.mm.default, torch.int32, a, a.t()).tolist() == [[30000]]
    with pytest.raises(ValueError, match="dtype"):
        out_dtype(torch.ops.aten.mm.default, "int32", a, a.t())


def test_strides_and_memory_formats_are_suggested():
    from cresset._prims_common import make_contiguous_strides_for, suggest_memory_format
    from cresset._prims_common.wrappers import _maybe_convert_to_dtype

    assert make_contiguous_strides_for((2, 0, 3)) == (3, 3, 1)
    assert make_contiguous_strides_for((2, 3, 4), row_major=False) == (12, 1, 3)
    pictures = torch.ones(2, 3, 4, 5)
    assert suggest_memory_format(pictures) == torch.contiguous_format
    assert suggest_memory_format(pictures.to(memory_format=torch.channels_last)) == torch.channels_last
    assert _maybe_convert_to_dtype([1, True, None], torch.float32) == (1.0, 1.0, None)
    assert _maybe_convert_to_dtype(torch.ones(1), torch.int8).dtype == torch.int8


def test_settings_of_kernels_are_kept_by_who_enters_them():
    from cresset.sparse._triton_ops_meta import get_meta, minimize, update

    assert get_meta("tests_product", (16, 32), "card") is None
    update("tests_product", "card", (0, torch.float16, 0.5), (16, 32), {"num_warps": 2})
    assert get_meta("tests_product", (16, 32), "card") == {"num_warps": 2}
    assert get_meta("tests_product", (16, 32), "another card") == {"num_warps": 2}
    assert get_meta("tests_product", (16, 32), "another card", exact=True) is None
    assert get_meta("tests_product", ("*", 32), "card") == {(16, 32): {"num_warps": 2}}
    with pytest.raises(NotImplementedError, match="not tuned"):
        minimize(None, {}, {}, None)


def test_matrices_that_are_half_zeros_are_refused_in_words():
    with pytest.raises(RuntimeError, match="Only CUDA tensors"):
        torch.sparse.to_sparse_semi_structured(torch.ones(32, 64))
    with pytest.raises(NotImplementedError, match="half zeros"):
        torch.sparse.SparseSemiStructuredTensor(torch.ones(2))


def test_the_processor_is_asked_by_its_features():
    from cresset import cpu

    assert torch._C._cpu._is_vnni_supported() is cpu.get_capabilities()["avx512_vnni"]
    assert cpu._is_amx_tile_supported() is cpu.get_capabilities()["amx_tile"]


def test_what_block_sparse_kernels_are_started_with_is_refused_at_use():
    from cresset.sparse import _triton_ops

    with pytest.raises(NotImplementedError, match="launch_kernel"):
        _triton_ops.launch_kernel(None)
    with pytest.raises(ValueError, match="product: the batch dimensions"):
        _triton_ops.broadcast_batch_dims("product", torch.ones(2, 1, 1), torch.ones(3, 1, 1))


def test_an_optimizer_makes_its_state_without_a_step():
    from cresset.distributed._tensor.placement_types import DTensorSpec, TensorMeta  # noqa: F401  torchtune's
    from cresset.distributed.checkpoint.state_dict import _init_optim_state

    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weight])
    _init_optim_state(optimizer)
    assert set(optimizer.state[weight]) == {"step", "exp_avg", "exp_avg_sq"}
    assert weight.tolist() == [1.0, 1.0]
