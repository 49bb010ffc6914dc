"""The modules of devices that are not here answer as those of PyTorch's CPU build do."""
# ruff: noqa: E501 -- a table of expressions: a row a line

import contextlib
import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")
if torch.cuda.is_available() or cresset.cuda.is_available():
    pytest.skip("this machine has a GPU", allow_module_level=True)

# Each is an expression with the same value, or the same class of error, in both.
SAME = """
torch.cuda.is_available() | torch.cuda.device_count() | torch.cuda.is_initialized() | torch.cuda.is_bf16_supported() | torch.cuda.get_arch_list()
torch.cuda.current_device() | torch.cuda.get_device_name(0) | torch.cuda.get_device_name() | torch.cuda.get_device_properties(0) | torch.cuda.get_device_capability()
torch.cuda.synchronize() | torch.cuda.init() | torch.cuda.current_stream() | torch.cuda.default_stream() | torch.cuda.mem_get_info() | torch.cuda.ipc_collect()
torch.cuda.set_device(-1) | torch.cuda.set_device('cpu') | torch.cuda.manual_seed(0) | torch.cuda.manual_seed_all(0) | torch.cuda.seed() | torch.cuda.seed_all()
torch.cuda.get_rng_state() | torch.cuda.get_rng_state_all() | torch.cuda.set_rng_state_all([]) | torch.cuda.initial_seed() | torch.cuda.cudart()
torch.cuda.memory_allocated() | torch.cuda.max_memory_allocated(0) | torch.cuda.memory_reserved() | torch.cuda.max_memory_reserved() | torch.cuda.memory_stats()
torch.cuda.empty_cache() | torch.cuda.memory_stats_as_nested_dict() | torch.cuda.can_device_access_peer(0, 1) | torch.cuda.utilization() | torch.cuda.temperature()
torch.cuda.Stream() | torch.cuda.Event() | torch.cuda.CUDAGraph() | torch.cuda.FloatTensor(2) | torch.cuda.FloatStorage(2) | torch.cuda.nvtx.range_push('a')
torch.cuda.nccl.is_available([]) | torch.cuda.profiler.start() | torch.cuda.amp.common.amp_definitely_not_available() | torch.cuda.stream(None).__enter__()
torch.cuda.device(-1).__enter__() | torch.cuda.device_of(torch.ones(1)).__enter__() | torch.cuda.device('cpu')
torch.cuda.get_per_process_memory_fraction() | torch.cuda.set_per_process_memory_fraction(0.5) | torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
torch.ones(1).cuda() | torch.ones(1).to('cuda:0') | torch.zeros(1, device='cuda') | torch.nn.Linear(1, 1).cuda() | torch.ones(1).pin_memory() | torch.ones(1).is_pinned()
torch.device('mps').type | torch.device('xpu:1').index | str(torch.device('hpu')) | torch.device('nonsense') | torch.device('mps') == torch.device('mps')
torch.backends.cudnn.is_available() | torch.backends.cudnn.version() | torch.backends.cudnn.enabled | torch.backends.cudnn.benchmark | torch.backends.cudnn.deterministic
torch.backends.cudnn.allow_tf32 | torch.backends.cudnn.is_acceptable(torch.ones(1)) | torch.backends.cuda.matmul.allow_tf32 | torch.backends.cuda.is_built()
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction | torch.backends.cuda.flash_sdp_enabled() | torch.backends.cuda.math_sdp_enabled()
torch.backends.cuda.mem_efficient_sdp_enabled() | torch.backends.cuda.cudnn_sdp_enabled() | torch.backends.mps.is_available() | torch.backends.mps.is_built()
torch.backends.mkldnn.enabled | torch.backends.mkldnn.deterministic
torch.backends.opt_einsum.enabled | torch.backends.opt_einsum.is_available() | torch.backends.cpu.get_cpu_capability() | torch.backends.mha.get_fastpath_enabled()
torch.backends.cusparselt.is_available() | torch.backends.fp32_precision | torch.backends.cudnn.fp32_precision | torch.backends.cuda.matmul.fp32_precision
torch.cpu.is_available() | torch.cpu.device_count() | torch.cpu.current_device() | torch.cpu.synchronize() | torch.cpu.is_initialized() | torch.cpu.set_device(0)
torch.xpu.is_available() | torch.xpu.device_count() | torch.xpu.current_device() | torch.xpu.manual_seed_all(0) | torch.xpu.empty_cache() | torch.xpu.memory_allocated()
torch.xpu.synchronize() | torch.xpu.get_device_name() | torch.xpu.is_bf16_supported() | torch.xpu.set_device(0) | torch.xpu.Stream() | torch.xpu.get_rng_state_all()
torch.mps.is_available() | torch.mps.device_count() | torch.mps.manual_seed(0) | torch.mps.synchronize() | torch.mps.empty_cache() | torch.mps.current_allocated_memory()
torch.mtia.is_available() | torch.mtia.device_count() | torch.mtia.synchronize() | torch.mtia.manual_seed(0) | torch.mtia.memory_allocated()
torch.accelerator.is_available() | torch.accelerator.device_count() | torch.accelerator.current_accelerator() | torch.accelerator.set_device_index(0)
torch.accelerator.synchronize() | torch.accelerator.current_device_index() | torch.accelerator.empty_cache() | torch.accelerator.memory_allocated()
torch.Stream() == torch.Stream('cpu') | str(torch.Stream()) | torch.Stream('cuda') | torch.Stream().record_event() | torch.Event().record() | str(torch.Event())
torch.get_device_module().__name__[-4:] | torch.get_device_module('cuda:0').__name__[-5:] | torch.get_device_module('foo') | torch.get_device_module(3)
[torch.set_float32_matmul_precision(p) or (torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32) for p in ('high', 'medium', 'bad', 'highest')]
torch.amp.is_autocast_available('cuda') | torch.is_autocast_enabled() | torch.get_autocast_dtype('cuda') == torch.float16
"""
SAME = [p.strip() for line in SAME.strip().splitlines() for p in line.split("|")]


def outcome(program, lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(compile(program, "<program>", "eval"), {"torch": lib})
        except Exception as error:
            return type(error).__name__


@pytest.mark.parametrize("program", SAME)
def test_the_answer_is_the_same(program):
    assert outcome(program, cresset) == outcome(program, torch)


@pytest.mark.parametrize(
    "place, value",
    [
        ("cudnn.benchmark", True), ("cudnn.deterministic", True), ("cudnn.enabled", False), ("cudnn.allow_tf32", False),
        ("cuda.matmul.allow_tf32", True),
        ("cuda.matmul.allow_fp16_reduced_precision_reduction", False), ("mkldnn.enabled", False),
        ("mkldnn.deterministic", True),
    ],
)  # fmt: skip
def test_a_setting_keeps_its_value(place, value):
    owner, _, name = place.rpartition(".")
    module = cresset.backends
    for part in owner.split("."):
        module = getattr(module, part)
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        assert getattr(module, name) is value
    finally:
        setattr(module, name, before)


@pytest.mark.parametrize("name", ["cudnn", "mkldnn"])
def test_flags_are_set_inside_and_come_back(name):
    def facts(lib):
        module, said = getattr(lib.backends, name), []
        before = (module.enabled, module.deterministic)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with module.flags(enabled=True, deterministic=True):
                said.append((module.enabled, module.deterministic))
            with module.flags():
                said.append((module.enabled, module.deterministic))
        said.append((module.enabled, module.deterministic) == before)
        return said

    assert facts(cresset) == facts(torch)


def test_attention_settings_are_set_and_come_back():
    def facts(lib):
        cuda, said = lib.backends.cuda, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
                said.append((cuda.flash_sdp_enabled(), cuda.math_sdp_enabled(), cuda.mem_efficient_sdp_enabled()))
            said.append(cuda.flash_sdp_enabled())
        cuda.enable_flash_sdp(False)
        said.append(cuda.flash_sdp_enabled())
        cuda.enable_flash_sdp(True)
        return said

    assert facts(cresset) == facts(torch)


# ---------------------------------------------------------------- precision of float32

PLACES = ["", "cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn"]


def at(lib, place):
    found = lib.backends
    for part in place.split(".") if place else ():
        found = getattr(found, part)
    return found


def precisions(lib):
    return [at(lib, place).fp32_precision for place in [*PLACES, "cudnn", "mkldnn"]]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", ["ieee", "tf32", "bf16", "none", "fp16", 3])
def test_a_precision_counts_where_pytorchs_does(place, value):
    seen = []
    # PyTorch's own test helpers, which other files here import, freeze its settings.
    thawed = getattr(torch.backends, "__allow_nonbracketed_mutation")
    for lib, allowed in ((torch, thawed), (cresset, contextlib.nullcontext)):
        before = [at(lib, p).fp32_precision for p in PLACES]
        with allowed():
            try:
                at(lib, place).fp32_precision = value
                outcome = None
            except Exception as error:
                outcome = type(error).__name__
            seen.append((outcome, precisions(lib)))
            for p, old in zip(PLACES, before, strict=True):
                at(lib, p).fp32_precision = old
    assert seen[0] == seen[1]


# ---------------------------------------------------------------- forms of attention


@pytest.mark.parametrize(
    "form", ["MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "OVERRIDEABLE", "ERROR"]
)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_form_of_attention_is_there_or_refused_as_in_pytorch(form, dropout):
    def attend(lib):
        x = lib.zeros(1, 2, 4, 8)
        try:
            with warnings.catch_warnings(), lib.nn.attention.sdpa_kernel(getattr(lib.nn.attention.SDPBackend, form)):
                warnings.simplefilter("ignore")
                return tuple(lib.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=dropout).shape)
        except RuntimeError as error:
            return "No viable backend" in str(error), "No available kernel" in str(error)

    assert attend(cresset) == attend(torch)
