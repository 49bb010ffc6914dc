"""Comparing derivatives with finite differences: gradcheck for the first, gradgradcheck for the second.

Every tensor is seen as real numbers, a complex element as two. Then the Jacobian of any function is a real matrix J
with a row for each number in and a column for each number out, and backward with the cotangent 1 (or i, for an
imaginary part) gives a column.
"""

import itertools
import sys
import types
import warnings

import cresset
from cresset._native import Tensor

from . import forward_ad
from .function import Function

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """The derivative is wrong, and how."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Whether the gradients of `func` at `inputs` agree with central differences, |a - n| <= atol + rtol |n|.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: those that require gradients are checked; they should be double precision.
        eps: the step of the differences.
        raise_exception: raise GradcheckError, which says what is wrong, instead of returning False.
        nondet_tol: how much two runs of backward may differ.
        check_undefined_grad: also check that a missing gradient, and a missing tangent, is taken as zeros.
        check_grad_dtypes: also check that a gradient has its input's dtype.
        check_batched_grad, check_batched_forward_grad: also check gradients of a batch against those of its entries.
        check_forward_ad, check_backward_ad: which directions to check.
        fast_mode: compare v'Ju for random u and v instead of all of J.
        masked: of sparse inputs, only the specified elements vary. Without it the function is checked at inputs that
            specify all elements, also the zeros.

    >>> x = cresset.tensor([1.0, 2.0], dtype=cresset.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    func, inputs = with_values_for_sparse(func, as_tuple(inputs), masked)
    try:
        inputs = checked_inputs(inputs)
        check = Check(func, inputs, eps, atol, rtol)
        if not check.outputs:
            check.no_dependence()
            return True
        compare = check.projections if fast_mode else check.matrices
        if check_backward_ad:
            compare(forward=False)
        if check_forward_ad:
            compare(forward=True)
            if check_undefined_grad:
                check.missing_tangents()
            if check_batched_forward_grad:
                check.batched_tangents()
        if check_backward_ad:
            check.form_of_gradients(check_grad_dtypes)
            check.same_twice(nondet_tol)
            if check_undefined_grad:
                check.missing_gradients()
            if check_batched_grad:
                check.batched_gradients()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """gradcheck of the gradients of `func`, as functions of its inputs and of `grad_outputs` (random ones by default).

    >>> x = cresset.tensor([1.0, 2.0], dtype=cresset.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x.exp() * x, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    inputs = as_tuple(inputs)
    if grad_outputs is None:
        generator = cresset.Generator().manual_seed(0)
        grad_outputs = tuple(
            cotangent(o, generator, gen_non_contig_grad_outputs) for o in differentiable(func(*inputs))
        )
    else:
        grad_outputs = as_tuple(grad_outputs)
    count = len(grad_outputs)
    checked = [is_checked(t) for t in inputs + grad_outputs]

    def gradients(*args):
        # In forward mode they come as tensors that need no gradient; here they are to have one.
        args = tuple(t.requires_grad_() if of else t for t, of in zip(args, checked, strict=True))
        point, cotangents = args[: len(args) - count], args[len(args) - count :]
        outputs = differentiable(func(*point))
        sources = tuple(arg for arg in point if is_checked(arg))
        found = cresset.autograd.grad(outputs, sources, cotangents, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


class Check:
    """One function at one point, and what can be asked about it."""

    def __init__(self, func, inputs, eps, atol, rtol):
        self.func, self.inputs, self.eps, self.atol, self.rtol = func, inputs, eps, atol, rtol
        self.results = as_tuple(func(*inputs))
        self.outputs = differentiable(self.results)
        self.sources = [(place, t) for place, t in enumerate(inputs) if is_checked(t)]

    def evaluate(self, inputs=None):
        """The differentiable outputs as rows of real numbers, without history."""
        results = as_tuple(self.func(*(self.inputs if inputs is None else inputs)))
        kept = [
            r
            for r, first in zip(results, self.results, strict=True)
            if isinstance(first, Tensor) and first.requires_grad
        ]
        return [numbers(r).clone() for r in kept]

    def pairs(self):
        return itertools.product(enumerate(self.outputs), self.sources)

    # ---- the whole Jacobian

    def numerical(self, place):
        """J by central differences, for one input and each output."""
        return central_differences(self.evaluate, self.inputs[place], self.eps)

    def backward(self, output):
        """J by backward, for one output and each input."""
        columns = [[] for _ in self.sources]
        for unit in units(output):
            for column, slope in zip(columns, self.gradients([output], [unit]), strict=True):
                column.append(numbers(slope))
        return [
            cresset.stack(column, 1) if column else numbers(t).new_zeros((numbers(t).numel(), 0))
            for column, (_, t) in zip(columns, self.sources, strict=True)
        ]

    def gradients(self, outputs, cotangents, create_graph=False):
        """Backward once: the gradient of each checked input, zeros for a missing one."""
        sources = [t for _, t in self.sources]
        found = cresset.autograd.grad(
            outputs, sources, cotangents, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
        return [cresset.zeros_like(t) if g is None else g for g, t in zip(found, sources, strict=True)]

    def forward(self, place):
        """J by forward mode, for one input and each output."""
        rows = [self.push({place: unit}) for unit in units(self.inputs[place])]
        if not rows:
            return [numbers(o).new_zeros((0, numbers(o).numel())) for o in self.outputs]
        return [cresset.stack(row) for row in zip(*rows, strict=True)]

    def push(self, tangents, missing=None):
        """The outputs' tangents for these tangents of inputs, as rows of real numbers. `missing`: the place of an input
        that has none, not even zeros.
        """
        with forward_ad.dual_level():
            point = [
                t
                if not is_checked(t)
                else t.detach()
                if place == missing
                else forward_ad.make_dual(t.detach(), tangents[place] if place in tangents else cresset.zeros_like(t))
                for place, t in enumerate(self.inputs)
            ]
            results = as_tuple(self.func(*point))
            kept = [
                r
                for r, first in zip(results, self.results, strict=True)
                if isinstance(first, Tensor) and first.requires_grad
            ]
            pairs = [forward_ad.unpack_dual(r) for r in kept]
        return [numbers(cresset.zeros_like(p.primal) if p.tangent is None else p.tangent) for p in pairs]

    def matrices(self, forward):
        numerical = {place: self.numerical(place) for place, _ in self.sources}
        by_input = {place: self.forward(place) for place, _ in self.sources} if forward else None
        by_output = None if forward else [self.backward(output) for output in self.outputs]
        for (o, output), (k, (place, t)) in itertools.product(enumerate(self.outputs), enumerate(self.sources)):
            analytical = by_input[place][o] if forward else by_output[o][k]
            if not agree(by_element(analytical, t), by_element(numerical[place][o], t), self.atol, self.rtol):
                which = wrong_part(numerical[place][o], analytical, output, self.atol, self.rtol)
                raise GradcheckError(which + mismatch(o, place, numerical[place][o], analytical, forward, output, t))

    # ---- v'Ju for random u and v

    def projections(self, forward):
        generator = cresset.Generator().manual_seed(0)
        for place, t in self.sources:
            u = random_direction(t, generator)
            data, start = t.data, t.detach().clone()
            try:
                data.copy_(start + self.eps * u)
                up = self.evaluate()
                data.copy_(start - self.eps * u)
                down = self.evaluate()
            finally:
                data.copy_(start)
            ends = list(pairs_alike(up, down))
            pushed = self.push({place: u}) if forward else None
            for o, output in enumerate(self.outputs):
                v = random_direction(output, generator)
                numerical = numbers(v) @ ((ends[o][0] - ends[o][1]) / (2 * self.eps))
                if forward:
                    analytical = numbers(v) @ pushed[o]
                else:
                    (slope,) = cresset.autograd.grad(output, [t], v, retain_graph=True, allow_unused=True)
                    analytical = numbers(u) @ numbers(cresset.zeros_like(t) if slope is None else slope)
                # An entry of J may be wrong by atol; so may the sum, by as many times as u and v weigh the entries.
                atol = self.atol * float(numbers(u).abs().sum()) * float(numbers(v).abs().sum())
                if not agree(analytical, numerical, atol, self.rtol):
                    raise GradcheckError(self.explain(o, place, numerical, analytical, forward, output, t))

    def explain(self, o, place, numerical, analytical, forward, output, t):
        text = mismatch(o, place, numerical, analytical, forward, output, t)
        text += (
            "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode: each "
            "is v'Ju for "
            "random u and v. "
        )
        try:
            self.matrices(forward)
        except GradcheckError as error:
            return f"{text}Below is the result of the check in slow mode:\n\n{error}"
        return text + "The check in slow mode, of all entries, passes with these tolerances."

    # ---- properties of backward

    def no_dependence(self):
        """No output requires a gradient: then no number out may depend on a number in."""
        first = as_tuple(self.func(*self.inputs))
        kept = [i for i, r in enumerate(first) if isinstance(r, Tensor) and (r.is_floating_point() or r.is_complex())]

        def evaluate():
            results = as_tuple(self.func(*self.inputs))
            return [numbers(results[i]).clone() for i in kept]

        for _, t in self.sources:
            for J in central_differences(evaluate, t, self.eps):
                if not agree(J, cresset.zeros_like(J), self.atol, self.rtol):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def form_of_gradients(self, check_dtypes):
        """Gradients have the inputs' shapes and devices, and are zero where the cotangents are."""
        zeros = [cresset.zeros_like(o) for o in self.outputs]
        sources = [t for _, t in self.sources]
        found = cresset.autograd.grad(self.outputs, sources, zeros, retain_graph=True, allow_unused=True)
        if all(g is None for g in found):
            raise GradcheckError("no Tensors requiring grad found in the graph of the outputs")
        for g, t in zip(found, sources, strict=True):
            if g is None:
                continue
            if bool((g != 0).any()):
                raise GradcheckError("backward not multiplied by grad_output")
            if g.shape != t.shape:
                raise GradcheckError(f"grad is incorrect size: {tuple(g.shape)} for an input of {tuple(t.shape)}")
            if g.device != t.device:
                raise GradcheckError(f"grad is on the wrong device: {g.device} for an input on {t.device}")
            if check_dtypes and g.dtype != t.dtype:
                raise GradcheckError(f"Gradient has dtype mismatch: {g.dtype} for an input of {t.dtype}")

    def same_twice(self, tolerance):
        """Backward gives the same again."""
        cotangents = [random_direction(o, cresset.Generator().manual_seed(1)) for o in self.outputs]
        once, again = (self.gradients(self.outputs, cotangents) for _ in range(2))
        for a, b in zip(once, again, strict=True):
            if a.numel() and float((a - b).abs().max()) > tolerance:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different "
                    "values, although analytical gradient matches numerical gradient. "
                    f"The tolerance for nondeterminism was {tolerance}."
                )

    def missing_tangents(self):
        """A tangent that is not there counts as zeros, whatever the others are."""
        generator = cresset.Generator().manual_seed(4)
        tangents = {place: random_direction(t, generator) for place, t in self.sources}
        for place, _ in self.sources:
            others = {other: tangent for other, tangent in tangents.items() if other != place}
            for o, (zero, none) in enumerate(zip(self.push(others), self.push(others, missing=place), strict=True)):
                if not agree(none, zero, self.atol, self.rtol):
                    raise GradcheckError(
                        f"Expected forward mode to give output {o} the same tangent whether that of input {place} is "
                        f"undefined or zero, got {none} and {zero}"
                    )

    def missing_gradients(self):
        """A gradient that does not arrive counts as zeros: for all outputs at once, and for each alone."""
        for missing in [range(len(self.outputs)), *([i] for i in range(len(self.outputs)) if len(self.outputs) > 1)]:
            outputs = [Unused.apply(o) if i in missing else o for i, o in enumerate(as_graph_outputs(self.outputs))]
            zeros = [cresset.zeros_like(o) for o in self.outputs]
            try:
                found = cresset.autograd.grad(
                    outputs, [t for _, t in self.sources], zeros, retain_graph=True, allow_unused=True
                )
            except RuntimeError as error:
                warn_of_check_undefined_grad()
                raise GradcheckError(
                    f"Expected backward function to handle undefined output grads, but it failed: {error}"
                ) from error
            if any(g is not None and bool((g != 0).any()) for g in found):
                warn_of_check_undefined_grad()
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero"
                )

    def batched_gradients(self):
        """Gradients of a batch of cotangents are those of its entries."""
        generator = cresset.Generator().manual_seed(2)
        sources = [t for _, t in self.sources]
        for output in self.outputs:
            entries = [random_direction(output, generator) for _ in range(2)]
            batched = cresset.autograd.grad(
                output, sources, cresset.stack(entries), retain_graph=True, allow_unused=True, is_grads_batched=True
            )
            single = [self.gradients([output], [entry]) for entry in entries]
            for k, found in enumerate(batched):
                if found is not None and not agree(found, cresset.stack([s[k] for s in single]), self.atol, self.rtol):
                    raise GradcheckError("gradcheck: the gradients of a batch differ from those of its entries")

    def batched_tangents(self):
        """Forward mode is linear in the tangents, so that a batch of them may be pushed as a sum."""
        generator = cresset.Generator().manual_seed(3)
        for place, t in self.sources:
            a, b = (random_direction(t, generator) for _ in range(2))
            for x, y, both in zip(self.push({place: a}), self.push({place: b}), self.push({place: a + b}), strict=True):
                if not agree(x + y, both, self.atol, self.rtol):
                    raise GradcheckError("gradcheck: forward mode is not linear in the tangent")


class Unused(Function):
    """The identity, whose backward gives no gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, _grad):
        return None


def warn_of_check_undefined_grad():
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature found a fault; "
        "check_undefined_grad=False leaves it out",
        stacklevel=4,
    )


def as_graph_outputs(outputs):
    return [o.view_as(o) for o in outputs]


# ---- numbers in and out


def as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_checked(value):
    return isinstance(value, Tensor) and value.requires_grad


def with_values_for_sparse(func, inputs, masked):
    """A function that takes the values of sparse inputs in their place, and these values."""
    sparse = {place: t for place, t in enumerate(inputs) if is_checked(t) and t.layout is not cresset.strided}
    if not sparse:
        return func, inputs
    if not masked:
        sparse = {place: with_all_elements(t) for place, t in sparse.items()}

    def by_values(*point):
        results = func(*(with_values(sparse[place], t) if place in sparse else t for place, t in enumerate(point)))
        for result in as_tuple(results):
            if isinstance(result, Tensor) and result.layout is not cresset.strided:
                raise ValueError(
                    "gradcheck: Sparse output is not supported at gradcheck yet. Please call "
                    "to_dense(masked_grad=...) on the output of fn for gradcheck."
                )
        return results

    def values(t):
        found = t._values() if t.layout is cresset.sparse_coo else t.values()
        return found.detach().clone().requires_grad_()

    return by_values, tuple(values(sparse[place]) if place in sparse else t for place, t in enumerate(inputs))


def with_all_elements(tensor):
    """A sparse tensor of the same layout and elements that specifies all of them, also the zeros."""
    ones = cresset.ones(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if tensor.layout is cresset.sparse_coo:
        pattern = ones.to_sparse(tensor.sparse_dim())
    else:
        block = tensor.block if tensor.layout in (cresset.sparse_bsr, cresset.sparse_bsc) else None
        pattern = ones.to_sparse(layout=tensor.layout, blocksize=block, dense_dim=tensor.dense_dim())
    return tensor.detach().to_dense().sparse_mask(pattern)


def with_values(pattern, values):
    """A sparse tensor with the indices of another one."""
    if pattern.layout is cresset.sparse_coo:
        return cresset.sparse_coo_tensor(pattern._indices(), values, pattern.shape, is_coalesced=pattern.is_coalesced())
    if pattern.layout in (cresset.sparse_csr, cresset.sparse_bsr):
        places = pattern.crow_indices(), pattern.col_indices()
    else:
        places = pattern.ccol_indices(), pattern.row_indices()
    return cresset.sparse_compressed_tensor(*places, values, pattern.shape, layout=pattern.layout)


def differentiable(results):
    return tuple(r for r in as_tuple(results) if is_checked(r))


def checked_inputs(inputs):
    inputs = as_tuple(inputs)
    if not any(is_checked(t) for t in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for place, t in enumerate(inputs):
        if not is_checked(t):
            continue
        t.retain_grad()
        if t.dtype not in (cresset.float64, cresset.complex128):
            warnings.warn(
                f"Input #{place} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape, strict=True)):
            raise RuntimeError(
                f"The {place}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able "
                "to compute the numerical gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )
    return inputs


def numbers(t):
    """A tensor as a row of real numbers, without history."""
    t = t.detach()
    return (cresset.view_as_real(t.resolve_conj()) if t.is_complex() else t).reshape(-1)


def units(t):
    """The tensors of the same shape with a single 1, and for complex ones a single i too, in the order of `numbers`."""
    for place in range(t.numel()):
        for value in (1, 1j) if t.is_complex() else (1,):
            unit = cresset.zeros_like(t.detach(), memory_format=cresset.contiguous_format)
            unit.view(-1)[place] = value
            yield unit


def random_direction(t, generator):
    """Numbers between 0 and 1, scaled to length 1."""
    real = cresset.rand(numbers(t).shape, generator=generator, dtype=numbers(t).dtype, device="cpu").to(t.device)
    real = real / real.norm() if real.numel() else real
    shaped = cresset.view_as_complex(real.reshape(*t.shape, 2)) if t.is_complex() else real.reshape(t.shape)
    return shaped.clone()


def cotangent(output, generator, noncontiguous):
    """A random gradient for an output, itself to be differentiated by."""
    shape = (*output.shape, 2) if noncontiguous else output.shape
    values = cresset.randn(shape, generator=generator, dtype=output.dtype, device="cpu").to(output.device)
    return (values[..., 0] if noncontiguous else values).requires_grad_()


def central_differences(evaluate, t, eps):
    """J of `evaluate`, which reads `t`, with a row for each number in `t`; one matrix for each row of numbers it
    returns.
    """
    data = t.data
    rows = []
    for index in itertools.product(*map(range, t.shape)):
        value = data[index].item()
        for step in (eps, eps * 1j) if t.is_complex() else (eps,):
            try:
                data[index] = value + step
                up = evaluate()
                data[index] = value - step
                down = evaluate()
            finally:
                data[index] = value
            rows.append([(a - b) / (2 * eps) for a, b in pairs_alike(up, down)])
    if not rows:
        return [out.new_zeros((0, out.numel())) for out in evaluate()]
    return [cresset.stack(column) for column in zip(*rows, strict=True)]


def pairs_alike(up, down):
    """The outputs on both sides of the point, which must be of one form."""
    for a, b in zip(up, down, strict=True):
        for form in ("shape", "dtype"):
            if getattr(a, form) != getattr(b, form):
                raise AssertionError(
                    f"gradcheck: expected the function to return outputs with the same {form} when inputs are "
                    f"perturbed, got {getattr(a, form)} and {getattr(b, form)}"
                )
        yield a, b


def agree(analytical, numerical, atol, rtol):
    dtype = cresset.promote_types(analytical.dtype, numerical.dtype)
    return cresset.allclose(analytical.to(dtype), numerical.to(dtype), rtol=rtol, atol=atol)


def by_element(J, source):
    """J with a row for each element of the input: of a complex one, both derivatives are wrong by so much together."""
    return cresset.complex(J[::2], J[1::2]) if source.is_complex() else J


def wrong_part(numerical, analytical, out, atol, rtol):
    """Which part of a complex output is wrong, as the beginning of a sentence; nothing where it is not a whole
    Jacobian of one.
    """
    if not out.is_complex() or numerical.dim() != 2:
        return ""
    part = "real" if agree(analytical[:, 1::2], numerical[:, 1::2], atol, rtol) else "imaginary"
    return f"While considering the {part} part of complex outputs only, "


def mismatch(output, place, numerical, analytical, forward, out, source):
    parts = (
        "\n(complex elements are shown as their real and imaginary parts)"
        if out.is_complex() or source.is_complex()
        else ""
    )
    largest = float((numerical - analytical).abs().max()) if numerical.numel() else 0.0
    return (
        f"Jacobian{' computed with forward mode' if forward else ''} mismatch for output {output} with respect to "
        f"input {place},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\nThe largest difference is {largest:.3g}.{parts}"
    )


# ---- the Jacobians alone


def _warn_that_it_goes(name):
    warnings.warn(
        f"`{name}` was part of PyTorch's private API, which says that it will go. Use `gradcheck`, or "
        "`torch.func.jacrev` and `torch.func.jacfwd`",
        FutureWarning,
        stacklevel=3,
    )


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """The Jacobian of `fn`'s first result by central differences, for each tensor of `target` (by default the
    inputs)."""
    _warn_that_it_goes("get_numerical_jacobian")
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0."
        )
    tensors = [t for t in as_tuple(inputs if target is None else target) if is_checked(t)]

    def evaluate():
        return [numbers(as_tuple(fn(inputs))[0]).clone()]

    return tuple(central_differences(evaluate, t, eps)[0] for t in tensors)


def get_numerical_jacobian_wrt_specific_input(fn, input_idx, inputs, outputs, eps, input=None, is_forward_ad=False):
    """The Jacobian by one input, by central differences, for each output."""
    inputs = as_tuple(inputs)
    t = inputs[input_idx] if input is None else input
    return tuple(central_differences(lambda: [numbers(o).clone() for o in as_tuple(fn(*inputs))], t, eps))


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """(Jacobians, whether backward gives the same twice, the right shapes, the right dtypes) of a result that has its
    graph.
    """
    _warn_that_it_goes("get_analytical_jacobian")
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out != 1.0."
        )
    sources = [t for t in as_tuple(inputs) if is_checked(t)]

    def run():
        rows, shapes, dtypes = [[] for _ in sources], True, True
        for unit in units(output):
            found = cresset.autograd.grad(output, sources, unit, retain_graph=True, allow_unused=True)
            for row, g, t in zip(rows, found, sources, strict=True):
                shapes = shapes and (g is None or g.shape == t.shape)
                dtypes = dtypes and (g is None or g.dtype == t.dtype)
                row.append(numbers(cresset.zeros_like(t) if g is None else g))
        return tuple(cresset.stack(row, 1) for row in rows), shapes, dtypes

    (once, shapes, dtypes), (again, _, _) = run(), run()
    same = all(not a.numel() or float((a - b).abs().max()) <= nondet_tol for a, b in zip(once, again, strict=True))
    return once, same, shapes, dtypes


class CallableModule(types.ModuleType):
    """`cresset.autograd.gradcheck` is a function, and this module: once it is imported, the name means both."""

    def __call__(self, *args, **kwargs):
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = CallableModule
