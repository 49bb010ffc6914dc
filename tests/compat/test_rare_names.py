"""Names that few programs use: checks, determinism, symbols, bits, old methods, result types, versions."""

import pytest

PROGRAMS = [
    "torch._add_relu(torch.tensor([1.0, -2.0]), torch.tensor([0.5, 1.0]), alpha=2)",
    "torch._add_relu(torch.tensor([1, -2]), torch.tensor([3, 1]))",
    "torch.ops.aten.silu_backward(torch.tensor([1.0, 2.0, -3.0]), torch.tensor([0.5, -1.0, 20.0]))",
    "torch.norm_except_dim(torch.arange(6.0).reshape(2, 3), 2, 1)",
    "torch.norm_except_dim(torch.arange(6.0).reshape(2, 3), 1, -2)",
    "torch.norm_except_dim(torch.tensor(3.0))",
    "torch._check(True)",
    "torch._check(False, lambda: 'words')",
    "torch._check(1)",
    "torch._check(torch.tensor(True))",
    "torch._check(False, 'words')",
    "torch._check_index(False)",
    "torch._check_value(False)",
    "torch._check_type(False)",
    "torch._check_not_implemented(False)",
    "torch._check_is_size(3, max=2)",
    "torch._check_is_size(3)",
    "torch._check_tensor_all(torch.tensor([True, True]))",
    "torch._check_tensor_all(torch.tensor([True, False]))",
    "torch._check_tensor_all(torch.tensor([1]))",
    "torch._check_tensor_all(True)",
    "torch._assert(False, 'words')",
    "torch._assert_async(torch.tensor(0))",
    "torch.sym_constrain_range(5, min=2, max=3), 0",
    "torch.sym_constrain_range(5, min=4, max=3)",
    "torch.sym_constrain_range(-5)",
    "torch.sym_constrain_range_for_size(-1)",
    "torch.sym_constrain_range_for_size(3, max=2)",
    "torch.sym_constrain_range_for_size(3, min=1, max=9)",
    "torch._assert_tensor_metadata(torch.ones(2, 3), [2, 3], [3, 1], torch.float32)",
    "torch._assert_tensor_metadata(torch.ones(2, 3), [2, 4])",
    "torch._assert_tensor_metadata(torch.ones(2, 3), dtype=torch.float64)",
    "torch._assert_tensor_metadata(torch.ones(2, 3), stride=[1, 1])",
    "torch.ops.aten._assert_tensor_metadata.default(torch.ones(2), device='cpu', layout=torch.strided)",
    "torch._assert_async(torch.tensor(1))",
    "torch._assert_async(torch.ones(2))",
    "torch._shape_as_tensor(torch.ones(2, 3))",
    "torch._is_all_true(torch.tensor([True, False])), torch._is_any_true(torch.tensor([True, False]))",
    ("torch.are_deterministic_algorithms_enabled(), torch.get_deterministic_debug_mode(), "
    "torch.get_float32_matmul_precision()"),
    ("torch.use_deterministic_algorithms(True, warn_only=True)\nr = (torch.get_deterministic_debug_mode(), "
    "torch.is_deterministic_algorithms_warn_only_enabled())\ntorch.use_deterministic_algorithms(False)\nr"),
    ("torch.set_deterministic_debug_mode('error')\nr = (torch.are_deterministic_algorithms_enabled(), torch.empty(2), "
    "torch.empty(2, dtype=torch.int16))\ntorch.set_deterministic_debug_mode(0)\nr"),
    "torch.set_deterministic_debug_mode('loud')",
    "torch.set_deterministic_debug_mode(1.5)",
    "torch.set_float32_matmul_precision('low')",
    ("torch.set_float32_matmul_precision('high')\nr = "
    "torch.get_float32_matmul_precision()\ntorch.set_float32_matmul_precision('highest')\nr"),
    "torch.utils.deterministic.fill_uninitialized_memory",
    "torch.utils.deterministic.fill_uninitialized_memory = 1",
    ("isinstance(3, torch.SymInt), torch.sym_int(2.5), torch.sym_float(2), torch.sym_max(1, 2.0), torch.sym_min(3, 2), "
    "torch.sym_not(True)"),
    "torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2]), torch.sym_sum(1, 2), torch.sym_sqrt(4)",
    "torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))",
    "torch.frexp(torch.tensor([6.0, -0.5, 0.0, float('inf'), 1e-45, 3e38]))",
    "torch.frexp(torch.tensor([6.0, 0.1], dtype=torch.float16)), torch.tensor([5e-324], dtype=torch.float64).frexp()",
    "torch.frexp(torch.tensor([1]))",
    "x = torch.tensor([6.0, 0.1], requires_grad=True)\ntorch.autograd.grad(torch.frexp(x).mantissa.sum(), x)",
    ("torch.hash_tensor(torch.tensor([1.0, 2.0, 3.0])), torch.hash_tensor(torch.arange(12).reshape(3, 4), 1), "
    "torch.hash_tensor(torch.arange(12).reshape(3, 4), 0, keepdim=True)"),
    "torch.hash_tensor(torch.arange(12).reshape(3, 4), (0, 1)), torch.tensor([True, True]).hash_tensor()",
    "torch.hash_tensor(torch.empty(0))",
    "torch.hash_tensor(torch.ones(2)).numpy().dtype.char, torch.tensor([1]).numpy().dtype.char",
    ("x = torch.arange(20).mul(7).remainder(11).div(3).reshape(4, 5)\n[torch.gradient(x.to(d), spacing=s, "
    "edge_order=e) for d in (torch.float32, torch.bfloat16, torch.float16) for s in (1, 0.3, [2.0, 0.7]) for e in (1, "
    "2)]"),
    ("x, s = torch.arange(20).mul(7).remainder(11).div(3).reshape(4, 5), [torch.tensor([0.0, 1.0, 3.0, 4.5]), "
    "torch.tensor([0.0, 1.0, 2.0, 4.0, 9.0])]\n[torch.gradient(x.to(d), spacing=s, edge_order=e) for d in "
    "(torch.float32, torch.float64, torch.bfloat16) for e in (1, 2)]"),
    "torch.gradient(torch.ones(3, dtype=torch.uint8))",
    ("x = torch.arange(60).mul(7).remainder(11).div(3).bfloat16()\n[torch.nn.functional.interpolate(x.reshape(s), "
    "size=n, mode=m, align_corners=a) for s, n, m in (((2, 3, 10), 17, 'linear'), ((2, 3, 2, 5), (5, 7), 'bicubic'), "
    "((1, 1, 3, 4, 5), (5, 7, 6), 'trilinear')) for a in (True, False)]"),
    ("[torch.nn.functional.interpolate(torch.arange(5.0).square().reshape(1, 1, 5), scale_factor=s, mode='linear') for "
    "s in (1.0, 1.1, 0.99)]"),
    ("x = torch.arange(126).mul(77).remainder(256).reshape(2, 1, 7, "
    "9).to(torch.uint8)\n[torch.nn.functional.interpolate(x, size=n, mode=m, align_corners=a, antialias=b) for n in "
    "((4, 3), (20, 30), (7, 12)) for m in ('bilinear', 'bicubic') for a in (True, False) for b in (True, False)]"),
    ("x = torch.arange(126).mul(77).remainder(256).reshape(1, 2, 7, "
    "9).to(torch.uint8)\n[torch.nn.functional.interpolate(x, scale_factor=s, mode=m) for s, m in ((1.7, 'nearest'), "
    "(0.4, 'nearest-exact'), (1.1, 'bilinear'), (1.1, 'bicubic'), (1.7, 'bicubic'), (0.4, 'bilinear'))]"),
    ("torch.nn.functional.interpolate(torch.arange(25.0).square().reshape(1, 1, 5, 5), scale_factor=1.1, "
    "mode='bilinear', antialias=True)"),
    "torch.nn.functional.interpolate(torch.ones(1, 1, 3, dtype=torch.uint8), size=4, mode='linear')",
    "torch.torch is torch",
    "torch.hash_tensor(torch.empty(0, 3), 0)",
    "torch.hash_tensor(torch.ones(2), 3)",
    "torch.hash_tensor(torch.ones(2), mode=1)",
    "torch.ones(2, 3).resize(3, 2), torch.ones(2, 3).resize_as(torch.ones(6))",
    "torch.ones(2, 3).resize(3, 3)",
    "torch.tensor([1.0, 2.0]).map2_(torch.ones(2), torch.zeros(2), lambda a, b, c: a + b + c)",
    "torch.tensor([-1.0, 2.0]).prelu(torch.tensor(0.5))",
    "torch.ones(1).reinforce(1)",
    "torch.tensor([2.0, 4.0]).__rdiv__(8)",
    "x = torch.ones(1)\nx.const_data_ptr() == x.data_ptr()",
    "torch.zeros(2).module_load(torch.ones(2)), torch.zeros(2).module_load(torch.ones(2), assign=True)",
    "x = torch.ones(1)\nx.is_mtia, x.is_vulkan, x.is_maia, x.is_distributed(), torch.is_signed(x)",
    ("x = torch.zeros(4)\ntorch.resize_as_(x, torch.ones(2)).shape, torch.clip_(torch.tensor([3.0]), 0, 1), "
    "torch.negative_(torch.tensor([3.0]))"),
    "torch.grid_sampler_2d(torch.arange(16.0).reshape(1, 1, 4, 4), torch.zeros(1, 2, 2, 2), 0, 0, False)",
    "torch.grid_sampler_3d(torch.arange(8.0).reshape(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 2, 3), 0, 0, True)",
    "repr(torch.tensor([3.0, 1.0]).max(0)), repr(torch.return_types.max((1, 2))), torch.return_types.qr([1, 2]).R",
    "torch.return_types.qr([1])",
    "torch.version.cuda, torch.version.hip, torch.version.xpu, torch.version.debug",
    ("V = torch.torch_version.TorchVersion\nV('2.10.0') > '2.9', V('2.1.0a0') < '2.1', V('2.1') == '2.1.0', "
    "V('2.1.0+cpu') >= (2, 1), V('2.0') == 'parrot', str(V('2.0'))"),
    "issubclass(torch.OutOfMemoryError, RuntimeError), issubclass(torch.AcceleratorError, RuntimeError)",
    "torch.get_device_module('parrot')",
    "torch.get_device_module(3.5)",
    ("torch.tensor([True, False]).clamp_min(torch.tensor([False, True])), torch.tensor([True, "
    "False]).clamp_max(torch.tensor([False, True]))"),
    ("torch.tensor(True).sum_to_size(()), torch.tensor([True]).sum_to_size((1,)), "
    "torch.tensor([[True]]).sum_to_size((1,))"),
    "torch.nextafter(torch.ones(1, requires_grad=True), torch.zeros(1)).requires_grad",
    "torch.ones(1).to(torch.ones(1, dtype=torch.float64, requires_grad=True)).requires_grad",
    "torch.float32.is_signed, isinstance(2, torch.types._Number)",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(agree, program):
    agree(program)


def test_result_types_have_names():
    torch = pytest.importorskip("torch")
    import cresset

    theirs = {kind.__name__ for kind in torch.return_types.all_return_types if not kind.__name__.startswith("_")}
    assert {name for name in theirs if not name.endswith("_out")} <= set(dir(cresset.return_types))


def test_a_function_of_pytorch_runs_ours_of_its_name_on_our_tensors():
    torch = pytest.importorskip("torch")
    import cresset

    x = cresset.tensor([[3.0, 4.0]], requires_grad=True)
    distance = torch.nn.PairwiseDistance(eps=0.0)(x, cresset.zeros(1, 2))
    assert type(distance) is cresset.Tensor and distance.tolist() == [5.0]
    distance.sum().backward()
    assert (x.grad - cresset.tensor([[0.6, 0.8]])).abs().max() < 1e-6
    assert torch.relu(-x).tolist() == torch.nn.functional.relu(-x).tolist() == [[0.0, 0.0]]
    loss = cresset.nn.functional.triplet_margin_with_distance_loss(
        x, cresset.zeros(1, 2), cresset.ones(1, 2), distance_function=torch.nn.PairwiseDistance(eps=0.0)
    )
    assert abs(loss.item() - (1 + 5 - 13**0.5)) < 1e-6


def test_a_function_of_pytorch_refuses_our_tensors_beside_its_own_or_without_a_name_here(monkeypatch):
    torch = pytest.importorskip("torch")
    import cresset

    with pytest.raises(TypeError):
        torch.add(cresset.ones(2), torch.ones(2))
    monkeypatch.setattr(torch.overrides, "resolve_name", lambda func: "torch.no_such_function")
    with pytest.raises(TypeError, match="no_such_function: a function of another library got a cresset tensor"):
        torch.nn.functional.pairwise_distance(cresset.ones(2), cresset.ones(2))
