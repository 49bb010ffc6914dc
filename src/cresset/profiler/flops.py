"""How many floating-point operations a call takes, from its name and its shapes. A multiplication with its addition
counts as two.
"""

from math import prod


def _mm(shapes, results):
    a, b = shapes[0], shapes[1]
    return 2 * prod(a) * b[-1]


def _matmul(shapes, results):
    a, b = shapes[0], shapes[1]
    if not a or not b:
        return 0
    return 2 * prod(results[0]) * a[-1]


def _added(shapes, results):
    return 2 * prod(results[0]) * shapes[1][-1]


def _linear(shapes, results):
    return 2 * prod(results[0]) * shapes[0][-1]


def _convolution(shapes, results):
    """Each element of the result (or, transposed, of the input) meets each weight of one group of channels.

    The shapes tell which it is, but for a square stride-1 one, where both ways count nearly the same.
    """
    input, weight, result = shapes[0], shapes[1], results[0]
    channels = -len(weight) + 1
    transposed = weight[0] == input[channels] and (
        result[channels] != weight[0] or prod(result[channels + 1 :]) > prod(input[channels + 1 :])
    )
    moved = input if transposed else result
    return 2 * prod(moved) // moved[channels] * prod(weight)


def _input_gradient(shapes, results):
    grad, weight = shapes[0], shapes[1]
    return 2 * prod(grad) // grad[1] * prod(weight)


def _weight_gradient(shapes, results):
    grad = shapes[0]
    return 2 * prod(grad) // grad[1] * prod(results[0])


def _attention(shapes, results):
    query, key, value = shapes[0], shapes[1], shapes[2]
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_gradient(shapes, results):
    """Scores again and the gradients of query and key, of one size; the gradients of the scores and of the value, of
    the other.
    """
    query, key, value = shapes[1], shapes[2], shapes[3]
    return 2 * prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _elementwise(shapes, results):
    return prod(results[0])


# The formulas by the operator's name.
PRODUCTS = {
    "mm": _mm, "_int_mm": _mm, "bmm": _mm, "mv": lambda shapes, results: 2 * prod(shapes[0]), "dot": lambda shapes,
    results: 2 * prod(shapes[0]),
    "matmul": _matmul, "addmm": _added, "baddbmm": _added, "linear": _linear, "convolution": _convolution,
    "_convolution_input_gradient": _input_gradient, "_convolution_weight_gradient": _weight_gradient,
    "_attention": _attention,
    "_attention_backward": _attention_gradient,
}  # fmt: skip
ELEMENTWISE = {"add": _elementwise, "mul": _elementwise}


def count(name, shapes, results, formulas={**PRODUCTS, **ELEMENTWISE}):  # noqa: B006 (never changed)
    """The operations of one call, or None where there is no formula for it.

    >>> cresset.profiler.flops.count("aten::mm", [[2, 3], [3, 4]], [[2, 4]])
    48
    """
    formula = formulas.get(name.removeprefix("aten::"))
    if formula is None or not shapes or not results:
        return None
    return formula(shapes, results)
