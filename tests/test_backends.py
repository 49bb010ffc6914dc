"""Settings of cresset.backends: they are checked, they read back, and those that choose something do choose it."""

import contextlib
import warnings

import pytest

import cresset
from cresset import backends
from cresset.nn import functional as F
from cresset.nn.attention import SDPBackend, sdpa_kernel
from cresset.ops import attention_choice


@pytest.fixture(autouse=True)
def precisions_come_back():
    from cresset.backends import precision

    before = dict(precision._said)
    precision._said.clear()  # what other tests of this process have said
    yield
    precision._said.clear()
    precision._said.update(before)
    for told in precision.on_change:
        told()


@pytest.fixture
def calls(monkeypatch):
    """Whether the fused operator ran, for each attention."""
    seen, fused, plain = [], cresset._attention, F.attention.attention_weights
    monkeypatch.setattr(cresset, "_attention", lambda *args: seen.append("fused") or fused(*args))
    monkeypatch.setattr(F.attention, "attention_weights", lambda *args: seen.append("math") or plain(*args))
    return seen


def attend(**how):
    x = cresset.randn(1, 2, 4, 8)
    return F.scaled_dot_product_attention(x, x, x, **how)


class TestAttention:
    def test_the_fused_operator_is_the_first_choice(self, calls):
        attend()
        assert calls == ["fused"]

    def test_math_alone_is_made_of_ordinary_operators_and_gives_the_same(self, calls):
        x = cresset.randn(2, 3, 5, 8)
        expected = F.scaled_dot_product_attention(x, x, x)
        with sdpa_kernel(SDPBackend.MATH):
            cresset.testing.assert_close(F.scaled_dot_product_attention(x, x, x), expected)
        attend()
        assert calls == ["fused", "math", "fused"]

    def test_the_switches_of_forms_choose(self, calls):
        backends.cuda.enable_flash_sdp(False)
        try:
            attend()
            backends.cuda.enable_math_sdp(False)
            with pytest.raises(RuntimeError, match="No viable backend"):
                attend()
        finally:
            backends.cuda.enable_flash_sdp(True)
            backends.cuda.enable_math_sdp(True)
        assert calls == ["math"]

    @pytest.mark.parametrize(
        "form", [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.OVERRIDEABLE, SDPBackend.ERROR]
    )
    def test_a_form_that_the_cpu_lacks_is_refused(self, form):
        with (
            sdpa_kernel(form),
            pytest.raises(RuntimeError, match="No viable backend for scaled_dot_product_attention was found"),
        ):
            attend()

    @pytest.mark.parametrize(
        "how",
        [{"dropout_p": 0.5}, {"attn_mask": cresset.zeros(4, 4, requires_grad=True)}],
        ids=["dropout", "a mask that learns"],
    )
    def test_what_the_only_form_cannot_compute_is_refused(self, how):
        with (
            sdpa_kernel(SDPBackend.FLASH_ATTENTION),
            pytest.raises(RuntimeError, match="No available kernel.  Aborting execution"),
        ):
            attend(**how)

    def test_the_order_is_that_of_the_list_when_that_is_asked_for(self, calls):
        both = [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
        with sdpa_kernel(both):
            attend()
        with sdpa_kernel(both, set_priority=True):
            attend()
        attend()
        assert calls == ["fused", "math", "fused"]

    def test_the_forms_come_back_after_an_error(self):
        before = dict(attention_choice.allowed)
        with contextlib.suppress(ZeroDivisionError), sdpa_kernel([SDPBackend.MATH], set_priority=True):
            _ = 1 / 0
        assert attention_choice.allowed == before and attention_choice._order == list(attention_choice.FORMS)

    def test_halves_are_added_in_halves_when_that_is_allowed(self):
        x = cresset.full(
            (1, 1, 2, 64), 300.0, dtype=cresset.float16
        )  # a score is 64 * 300 * 300, which float16 cannot hold
        with sdpa_kernel(SDPBackend.MATH):
            assert F.scaled_dot_product_attention(x, x, x, scale=1.0).eq(300).all()
            backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
            try:
                assert backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
                assert F.scaled_dot_product_attention(x, x, x, scale=1.0).isnan().all()
            finally:
                backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)

    @pytest.mark.parametrize("value", ["x", 1, None])
    def test_a_switch_is_true_or_false(self, value):
        with pytest.raises(RuntimeError, match="expects a bool"):
            backends.cuda.enable_flash_sdp(value)

    @pytest.mark.parametrize("given", ["math", (SDPBackend.MATH,), ["math"]])
    def test_only_backends_and_lists_of_them_are_taken(self, given):
        with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"), sdpa_kernel(given):
            pass

    def test_a_setting_warns_when_the_fused_operator_is_not_used(self, monkeypatch):
        monkeypatch.setattr(cresset.nn.attention, "WARN_FOR_UNFUSED_KERNELS", True)
        attend()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            attend(dropout_p=0.5)
        assert [str(w.message).partition(" because: ")[0] for w in seen] == [
            "Efficient attention can't be used",
            "Flash attention can't be used",
        ]
        assert "does not drop weights, dropout_p is 0.5" in str(seen[1].message)

    def test_debug_says_why_a_form_is_not_used(self):
        x = cresset.zeros(1, 1, 2, 8)
        params = backends.cuda.SDPAParams(x, x, x, None, 0.0, False)
        with pytest.warns(UserWarning, match="on cpu"):
            assert not backends.cuda.can_use_flash_attention(params, debug=True)
        assert not backends.cuda.can_use_cudnn_attention(params)


class TestPrecision:
    def test_the_nearest_word_counts(self):
        backends.fp32_precision = "tf32"
        assert backends.cuda.matmul.fp32_precision == backends.mkldnn.conv.fp32_precision == "tf32"
        assert backends.cuda.matmul.allow_tf32
        backends.mkldnn.fp32_precision = "bf16"
        backends.mkldnn.conv.fp32_precision = "ieee"
        assert [
            backends.mkldnn.matmul.fp32_precision,
            backends.mkldnn.conv.fp32_precision,
            backends.cudnn.fp32_precision,
        ] == ["bf16", "ieee", "tf32"]

    def test_a_backend_that_lacks_a_precision_does_not_take_it_from_all(self):
        backends.fp32_precision = "bf16"
        assert backends.mkldnn.matmul.fp32_precision == "bf16" and backends.cuda.matmul.fp32_precision == "none"

    @pytest.mark.parametrize(
        "place", ["", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul"]
    )
    @pytest.mark.parametrize("value, error", [("fp16", RuntimeError), (3, TypeError), (None, TypeError)])
    def test_an_unknown_precision_is_refused(self, place, value, error):
        owner = backends
        for part in place.split(".") if place else ():
            owner = getattr(owner, part)
        before = owner.fp32_precision
        with pytest.raises(error):
            owner.fp32_precision = value
        assert owner.fp32_precision == before

    def test_cuda_has_no_bfloat16_products_of_float32(self):
        with pytest.raises(RuntimeError, match="backend 'cuda' does not support precision 'bf16'"):
            backends.cuda.matmul.fp32_precision = "bf16"

    def test_flags_hold_inside_and_are_checked(self):
        with backends.flags(fp32_precision="bf16"):
            assert backends.fp32_precision == "bf16"
        assert backends.fp32_precision == "none"
        with pytest.raises(RuntimeError, match="Unknown precision: nope"), backends.flags(fp32_precision="nope"):
            pass

    def test_the_old_names_and_the_new_ones_say_the_same(self):
        for word, cuda, cpu in (("high", "tf32", "tf32"), ("medium", "tf32", "bf16"), ("highest", "ieee", "ieee")):
            cresset.set_float32_matmul_precision(word)
            assert cresset.get_float32_matmul_precision() == word
            assert [backends.cuda.matmul.fp32_precision, backends.mkldnn.matmul.fp32_precision] == [cuda, cpu]
        backends.cuda.matmul.allow_tf32 = True
        assert cresset.get_float32_matmul_precision() == "high" and backends.cuda.matmul.fp32_precision == "tf32"

    def test_products_on_the_cpu_are_exact_float32_at_every_precision(self):
        a, b = cresset.randn(40, 50), cresset.randn(50, 30)
        exact = a @ b
        cresset.set_float32_matmul_precision("medium")
        assert (a @ b).equal(exact)


class TestChecking:
    @pytest.mark.parametrize("name", ["enabled", "benchmark", "deterministic", "allow_tf32"])
    def test_a_setting_of_cudnn_is_true_or_false(self, name):
        with pytest.raises(RuntimeError, match=f"{name} expects a bool, but got int"):
            setattr(backends.cudnn, name, 3)

    def test_flags_are_restored_with_what_was_none(self):
        with backends.cudnn.flags(enabled=False, benchmark_limit=3):
            assert (backends.cudnn.enabled, backends.cudnn.benchmark_limit) == (False, 3)
        assert (backends.cudnn.enabled, backends.cudnn.benchmark_limit) == (True, None)

    def test_set_flags_gives_what_was_and_takes_it_back(self):
        before = backends.cudnn.set_flags(_enabled=False)
        assert before[0] is True and backends.cudnn.enabled is False
        backends.cudnn.set_flags(*before)
        assert backends.cudnn.enabled is True

    def test_an_unknown_flag_is_refused(self):
        with pytest.raises(TypeError, match="unexpected keyword argument 'fast'"), backends.cudnn.flags(fast=True):
            pass

    def test_frozen_settings_change_by_flags_only(self, monkeypatch):
        monkeypatch.setattr(backends.settings, "_frozen", [False])
        backends.disable_global_flags()
        assert backends.flags_frozen()
        with pytest.raises(
            RuntimeError, match="not allowed to set torch.backends.cudnn flags after disable_global_flags"
        ):
            backends.cudnn.enabled = False
        with backends.cudnn.flags(enabled=False):
            assert not backends.cudnn.enabled
        assert backends.cudnn.enabled and backends.flags_frozen()

    def test_depthwise_kernel_is_one_of_three(self):
        with pytest.raises(RuntimeError, match="Unknown cuDNN depthwise kernel mode: x"):
            backends.cudnn.depthwise_kernel = "x"

    def test_engines_of_quantized_operators_have_names(self):
        assert backends.quantized.engine in backends.quantized.supported_engines
        with pytest.raises(RuntimeError, match="zz is not a valid value for quantized engine"):
            backends.quantized.engine = "zz"
        with pytest.raises(RuntimeError, match="Assignment not supported"):
            backends.quantized.supported_engines = []

    def test_einsum_does_not_promise_a_package_it_does_not_use(self):
        with pytest.raises(ValueError, match="opt_einsum is not available"):
            backends.opt_einsum.enabled = True

    @pytest.mark.parametrize(
        "function, names, refused",
        [
            ("preferred_linalg_library", ["default", "cusolver"], "magma"),
            ("preferred_blas_library", ["default", "cublaslt"], "cublas"),
            ("preferred_rocm_fa_library", ["default"], "ck"),
        ],
    )
    def test_a_library_that_is_not_used_cannot_be_preferred(self, function, names, refused):
        choose = getattr(backends.cuda, function)
        assert {choose(name) for name in names} == {choose()}
        with pytest.raises(RuntimeError, match="Cannot set preferred backend"):
            choose(refused)
        with pytest.raises(RuntimeError, match="Unknown input value"):
            choose("nope")
        with pytest.raises(RuntimeError, match="Unknown input value type"):
            choose(2.5)
        assert choose() == choose("default")

    def test_a_sum_that_cublas_may_split_cannot_be_kept_whole(self):
        with pytest.raises(RuntimeError, match="splitting a sum"):
            backends.cuda.matmul.allow_fp16_reduced_precision_reduction = (False, False)
        with pytest.raises(AttributeError, match="Unknown attribute"):
            backends.cuda.matmul.zzz = 1


def test_the_native_setting_of_mkldnn_is_that_of_the_backend():
    assert cresset._C._get_mkldnn_enabled()
    cresset._C._set_mkldnn_enabled(False)
    try:
        assert not cresset.backends.mkldnn.enabled
    finally:
        cresset._C._set_mkldnn_enabled(True)
    assert cresset.backends.mkldnn.enabled


def test_the_capability_of_the_processor_can_be_asked_for_in_a_script():
    ask = backends.cpu.get_cpu_capability
    assert cresset.jit.script(ask)() == ask()
