"""Derivatives of functions as functions: vjp, jvp, jacobian, hessian, vhp and hvp.

Each takes a function of tensors and the point, and returns new tensors. With `create_graph` the results can be
differentiated by `inputs` again. With `strict`, a part that does not depend on the inputs raises; without, it gives
zeros.
"""

import cresset

from .grad_mode import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

STRATEGIES = ("forward-mode", "reverse-mode")


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs of `func` and the product of `v` with its Jacobian: one backward pass.

    `v` has the outputs' shapes; it may be None for a single output of one element.

    >>> x = cresset.tensor([1.0, 2.0])
    >>> vjp(lambda x: x**2, x, cresset.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        one_in, inputs = as_tuple(inputs, "inputs", "vjp")
        inputs = track(inputs, create_graph)
        one_out, outputs = as_tuple(func(*inputs), RESULT, "vjp")
        require_graph(outputs, "outputs", strict)
        v = vector(v, outputs, one_out, create_graph, "vjp", "user-provided function returns")
    with set_grad_enabled(create_graph or cresset.is_grad_enabled()):
        product = filled(grad(outputs, inputs, v, create_graph), inputs, strict, create_graph, FIRST)
    return untupled(one_out, finished(outputs, create_graph)), untupled(one_in, finished(product, create_graph))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs of `func` and the product of its Jacobian with `v`, by differentiating a vjp by its vector.

    `v` has the inputs' shapes; it may be None for a single input of one element.

    >>> x = cresset.tensor([1.0, 2.0])
    >>> jvp(lambda x: x**2, x, cresset.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        one_in, inputs = as_tuple(inputs, "inputs", "jvp")
        inputs = track(inputs, create_graph)
        v = vector(v, inputs, one_in, create_graph, "jvp", "input to the user-provided function is")
        one_out, outputs = as_tuple(func(*inputs), RESULT, "jvp")
        require_graph(outputs, "outputs", strict)
        # vjp is linear in its vector u, so that its derivative by u, at any u, is the Jacobian itself.
        u = tuple(cresset.zeros_like(output, requires_grad=True) for output in outputs)
        pulled = grad(outputs, inputs, u, create_graph=True)
        require_graph(pulled, "grad_inputs", strict)
    with set_grad_enabled(create_graph or cresset.is_grad_enabled()):
        product = filled(grad(pulled, u, v, create_graph), outputs, strict, create_graph, TRICK)
    return untupled(one_out, finished(outputs, create_graph)), untupled(one_out, finished(product, create_graph))


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of `func`: for each output and each input a tensor of shape `output.shape + input.shape`.

    A single tensor for one input and one output, else a tuple over the inputs, the outputs, or a tuple of tuples
    (outputs first). Rows are computed one after another, with `vectorize` all at once; `strategy="forward-mode"` goes
    by columns.

    >>> jacobian(lambda x: x**2, cresset.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    assert strategy in STRATEGIES, (
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
        "than inputs, "
        '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
    )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'jacobian: create_graph=True and strategy="forward-mode" are not supported together'
            )
        if strict:
            raise RuntimeError('jacobian: strict=True and strategy="forward-mode" are not supported together')
        if not vectorize:
            raise NotImplementedError(
                'jacobian: strategy="forward-mode" is only supported together with vectorize=True'
            )
        return jacobian_by_columns(func, inputs)
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: strict=True and vectorize=True are not supported together; set one of them to False"
        )
    with enable_grad():
        one_in, inputs = as_tuple(inputs, "inputs", "jacobian")
        inputs = track(inputs, create_graph)
        one_out, outputs = as_tuple(func(*inputs), RESULT, "jacobian")
        require_graph(outputs, "outputs", strict)
        blocks = tuple(
            rows_at_once(output, inputs, create_graph)
            if vectorize
            else rows(number, output, inputs, create_graph, strict)
            for number, output in enumerate(outputs)
        )
    return nested(one_out, one_in, finished(blocks, create_graph))


def rows(number, output, inputs, create_graph, strict):
    """The Jacobian of one output: a tensor for each input."""
    by_input = [[] for _ in inputs]
    for place in range(output.numel()):
        unit = cresset.zeros_like(output).reshape(-1)
        unit[place] = 1
        slopes = grad((output,), inputs, (unit.view(output.shape),), create_graph, retain_graph=True)
        for k, (slope, input) in enumerate(zip(slopes, inputs, strict=True)):
            if slope is None and strict:
                raise RuntimeError(
                    f"Output {number} of the user-provided function is independent of input {k}. This is not allowed "
                    "in strict mode."
                )
            if slope is not None and strict and create_graph and not slope.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {k}. "
                    "This is not allowed in strict mode when create_graph=True."
                )
            by_input[k].append(cresset.zeros_like(input) if slope is None else slope)
    return tuple(
        cresset.stack(slopes).view(output.shape + input.shape)
        if slopes
        else input.new_zeros(output.shape + input.shape)
        for slopes, input in zip(by_input, inputs, strict=True)
    )


def rows_at_once(output, inputs, create_graph):
    """The Jacobian of one output, by one backward inside vmap over its elements."""
    units = cresset.eye(output.numel(), dtype=output.dtype, device=output.device).view(output.numel(), *output.shape)
    if not output.requires_grad or not output.numel():
        return tuple(
            cresset.zeros(output.shape + input.shape, dtype=input.dtype, device=input.device) for input in inputs
        )
    slopes = cresset.autograd.grad(
        (output,),
        inputs,
        (units,),
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=True,
    )
    return tuple(
        input.new_zeros(output.shape + input.shape) if slope is None else slope.reshape(output.shape + input.shape)
        for slope, input in zip(slopes, inputs, strict=True)
    )


def jacobian_by_columns(func, inputs):
    """The Jacobian by forward mode, inside vmap over the elements of the inputs."""
    one_in, inputs = as_tuple(inputs, "inputs", "jacobian")
    kinds = []

    def outputs_of(*point):
        one_out, outputs = as_tuple(func(*point), RESULT, "jacobian")
        kinds.append(one_out)
        return tuple(outputs)

    point = tuple(input.detach() for input in inputs)
    blocks = cresset.func.jacfwd(outputs_of, tuple(range(len(point))))(*point)
    return nested(kinds[0], one_in, finished(blocks, False))


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a function with one number as its result.

    For one input a tensor of shape `input.shape + input.shape`, else a tuple of tuples.

    >>> hessian(lambda x: (x**3).sum(), cresset.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    one_in, inputs = as_tuple(inputs, "inputs", "hessian")
    assert outer_jacobian_strategy in STRATEGIES, 'Expected strategy to be either "forward-mode" or "reverse-mode".'

    def gradient(*point):
        if outer_jacobian_strategy == "forward-mode":  # the outer pass carries tangents; the inner one needs a graph
            point = tuple(t if t.requires_grad else t.requires_grad_(True) for t in point)
        slopes = jacobian(lambda *point: scalar(func(*point), "hessian", strict).squeeze(), point, create_graph=True)
        require_graph(slopes, "jacobian", strict)
        return slopes

    blocks = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks[0][0] if one_in else blocks


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The result of `func`, one number, and the product of `v` with its Hessian.

    >>> vhp(lambda x: (x**3).sum(), cresset.tensor([1.0, 2.0]), cresset.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        one_in, inputs = as_tuple(inputs, "inputs", "vhp")
        inputs = track(inputs, create_graph)
        v = vector(v, inputs, one_in, create_graph, "vhp", "input to the user-provided function is")
        output = scalar(func(*inputs), "vhp", strict)
        slopes = grad((output,), inputs, None, create_graph=True)
        require_graph(slopes, "jacobian", strict)
    with set_grad_enabled(create_graph or cresset.is_grad_enabled()):
        product = filled(grad(slopes, inputs, v, create_graph), inputs, strict, create_graph, SECOND)
    return finished(output, create_graph), untupled(one_in, finished(product, create_graph))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The result of `func`, one number, and the product of its Hessian with `v`.

    The same as vhp wherever the Hessian is symmetric, and slower.

    >>> hvp(lambda x: (x**3).sum(), cresset.tensor([1.0, 2.0]), cresset.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        one_in, inputs = as_tuple(inputs, "inputs", "hvp")
        inputs = track(inputs, create_graph)
        v = vector(v, inputs, one_in, create_graph, "hvp", "input to the user-provided function is")
        output = scalar(func(*inputs), "hvp", strict)
        slopes = grad((output,), inputs, None, create_graph=True)
        require_graph(slopes, "jacobian", strict)
        u = tuple(cresset.zeros_like(input, requires_grad=True) for input in inputs)
        pulled = grad(slopes, inputs, u, create_graph=True)
        require_graph(pulled, "hessian", strict)
    with set_grad_enabled(create_graph or cresset.is_grad_enabled()):
        product = filled(grad(pulled, u, v, create_graph), inputs, strict, create_graph, TRICK)
    return finished(output, create_graph), untupled(one_in, finished(product, create_graph))


# ---- arguments and results

RESULT = "outputs of the user-provided function"


def as_tuple(value, what, who):
    """Whether it was a single tensor, and the tensors as a tuple."""
    one = not isinstance(value, tuple)
    values = (value,) if one else value
    for place, item in enumerate(values):
        if not isinstance(item, cresset.Tensor):
            where = f"the given {what} is" if one else f"the value at index {place} is"
            raise TypeError(
                f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but {where} of type "
                f"{type(item)}."
            )
    return one, values


def track(tensors, create_graph, wanted=True):
    """Fresh tensors at the same point: new leaves, or views of the given ones whose history has to go on."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(wanted) for t in tensors
    )


def finished(tensors, create_graph):
    """The results, without history unless it was asked for."""
    if isinstance(tensors, cresset.Tensor):
        return tensors if create_graph else tensors.detach()
    return tuple(finished(t, create_graph) for t in tensors)


def untupled(one, values):
    return values[0] if one else values


def nested(one_out, one_in, blocks):
    if one_in:
        blocks = tuple(row[0] for row in blocks)
    return blocks[0] if one_out else blocks


def vector(v, like, one, create_graph, who, single):
    """`v` checked against the tensors it is multiplied with."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if the {single} a single Tensor with a single element.")
        return None if who == "vjp" else (cresset.ones_like(like[0]),)
    _, v = as_tuple(v, "v", who)
    if len(v) != len(like):
        raise RuntimeError(
            "The given v should contain a single Tensor."
            if one
            else f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
        )
    for place, (part, other) in enumerate(zip(v, like, strict=True)):
        if part.shape != other.shape:
            entry = "" if one else f"Entry {place} in "
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {part.shape}.")
    return track(v, create_graph, wanted=False)


def scalar(result, who, strict):
    """The one number a function must return."""
    one, outputs = as_tuple(result, RESULT, who)
    require_graph(outputs, "outputs", strict)
    output = outputs[0]
    if not one:
        raise RuntimeError(f"The function given to {who} should return a single Tensor")
    if output.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {who} should contain a single element")
    return output


# ---- gradients with holes

INDEPENDENT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable "
    "manner from the input when running in strict mode.",
    "grad_inputs": (
        "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
    ),
    "jacobian": (
        "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
    ),
    "hessian": (
        "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."
    ),
}
CONSTANT = {
    "grad_inputs": (
        "The gradient with respect to the inputs is independent of the inputs (at input {}). This is not "
        "allowed in strict mode."
    ),
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {} is "
    "independent of the input. This is not allowed in strict mode: the function must be twice differentiable and not "
    "linear.",
    "hessian": (
        "The hessian of the user-provided function is independent of input {}. This is not allowed in strict mode."
    ),
}


def require_graph(tensors, what, strict):
    """In strict mode, each tensor must exist and must have come from the inputs."""
    if not strict:
        return
    for place, t in enumerate((tensors,) if isinstance(tensors, cresset.Tensor) else tensors):
        if t is None:
            raise RuntimeError(INDEPENDENT[what].format(place))
        if not t.requires_grad:
            raise RuntimeError((CONSTANT if what in CONSTANT else INDEPENDENT)[what].format(place))


def grad(outputs, inputs, grad_outputs=None, create_graph=False, retain_graph=None):
    """autograd.grad over the outputs that have a history; None for the inputs nothing leads to."""
    given = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [
        (output, g) for output, g in zip(outputs, given, strict=True) if output is not None and output.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    kept, grads = zip(*pairs, strict=True)
    return cresset.autograd.grad(kept, inputs, grads, retain_graph, create_graph, allow_unused=True)


# What is missing at each stage: (a gradient that is None, a gradient that is constant though a graph was asked for).
FIRST = (
    "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    (
        "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode "
        "when "
        "create_graph=True."
    ),
)
SECOND = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    (
        "The hessian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
        "create_graph=True."
    ),
)
TRICK = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
    "backward trick to "
    "compute forward mode gradients. This is not allowed in strict mode.",
    FIRST[1],
)


def filled(grads, like, strict, create_graph, stage):
    """Zeros for the gradients that are missing, or an error in strict mode."""
    missing, constant = stage
    result = []
    for place, (g, other) in enumerate(zip(grads, like, strict=True)):
        if g is None and strict:
            raise RuntimeError(missing.format(place))
        if g is None:
            g = cresset.zeros_like(other)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(constant.format(place))
        result.append(g)
    return tuple(result)
