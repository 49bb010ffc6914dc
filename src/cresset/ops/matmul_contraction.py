"""Products that sum over shared dimensions: einsum and what can be said with it."""

import functools
import math
import warnings
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

import cresset

from .._native import forget_base, name_node
from .dimensions import is_integer, wrap_dims
from .registry import function, functions, functions_in_place, methods

_LETTERS = ascii_uppercase + ascii_lowercase
_ELLIPSIS = "..."


@function(autocast={"cuda": "lower"}, takes_list=True)
def einsum(*args):
    """Sums of products of elements, written with Einstein's convention.

    Every dimension gets a letter. Equal letters run together; a letter that is not in the output is summed over;
    `...` stands for the dimensions without a letter, which broadcast. Without `->` the output has the ellipsis, then
    the letters that occur once, sorted (capitals first).

    Called as `einsum(equation, *operands)`, or with lists of numbers below 52 instead of letters, as
    `einsum(operand, subscripts, operand, subscripts, ..., [output subscripts])`.

    >>> cresset.einsum("ij,jk->ik", cresset.tensor([[1, 2]]), cresset.tensor([[3], [4]]))
    tensor([[11]])
    """
    equation, operands = _equation_and_operands(args)
    views, products, result = _plan(equation, tuple(tuple(operand.shape) for operand in operands))
    operands = [operand if view is None else view.of(operand) for operand, view in zip(operands, views)]
    for product in products:
        product.of(operands)
    result = result.of(operands[0])
    multiplied = products and products[-1].multiply != "mul"
    return name_node(result, "ViewBackward0") if multiplied else result


def _equation_and_operands(args):
    """Both calling forms as an equation and a sequence of tensors."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], cresset.Tensor):
        operands, lists = args[: len(args) // 2 * 2 : 2], args[1::2]
        equation = ",".join(map(_letters_of_numbers, lists))
        if len(args) % 2:
            equation += "->" + _letters_of_numbers(args[-1])
        return equation, operands
    equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    return equation, operands


def _letters_of_numbers(subscripts):
    """`[0, Ellipsis, 26]` as `"A...a"`."""
    letters = []
    for subscript in subscripts:
        if subscript is not Ellipsis and not 0 <= subscript < len(_LETTERS):
            raise ValueError(
                f"einsum(): subscript in subscript list is not within the valid range [0, 52), got {subscript}"
            )
        letters.append(_ELLIPSIS if subscript is Ellipsis else _LETTERS[subscript])
    return "".join(letters)


def _labels(equation, ndims):
    """A label for each dimension of each operand, and the labels of the output.

    Labels are letters; a dimension under an ellipsis has its distance from the ellipsis' end (1, 2, …) instead.
    """
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(ndims) != len(terms):
        raise RuntimeError(
            f"einsum(): {'more' if len(ndims) > len(terms) else 'fewer'} operands were provided than specified in the "
            f"equation: {len(ndims)} for {len(terms)} in '{equation}'"
        )
    terms = [_split_term(term, equation, f"operand {position}") for position, term in enumerate(terms)]
    widest, inputs = 0, []
    for position, (term, ndim) in enumerate(zip(terms, ndims)):
        spare = ndim - sum(label != _ELLIPSIS for label in term)
        if spare < 0 or (spare and _ELLIPSIS not in term):
            fault, reason = "does not match", " and no ellipsis was given"
            if _ELLIPSIS in term:
                fault, reason = "is more than", ""
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({ndim - spare}) {fault} "
                f"the number of dimensions ({ndim}) for operand {position}{reason}"
            )
        widest = max(widest, spare)
        inputs.append(_fill_ellipsis(term, spare))
    if arrow:
        output = _split_term(right, equation, "output")
        for label in output:
            if label != _ELLIPSIS and output.count(label) > 1:
                raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
            if label != _ELLIPSIS and not any(label in term for term in terms):
                raise RuntimeError(
                    f"einsum(): output subscript {label} does not appear in the equation for any input operand"
                )
    else:
        letters = [label for term in terms for label in term if label != _ELLIPSIS]
        output = [_ELLIPSIS, *sorted(label for label in letters if letters.count(label) == 1)]
    return tuple(map(tuple, inputs)), tuple(_fill_ellipsis(output, widest))


def _split_term(term, equation, whose):
    """The labels of one term, `...` among them; blanks do not count."""
    labels = []
    for letter in term.replace(_ELLIPSIS, "\0"):
        if letter == "\0":
            if _ELLIPSIS in labels:
                raise RuntimeError(f"einsum(): found '.' for {whose} for which an ellipsis was already found")
            labels.append(_ELLIPSIS)
        elif letter == "." and _ELLIPSIS in labels:
            raise RuntimeError(f"einsum(): found '.' for {whose} but an ellipsis (...) was already found")
        elif letter == ".":
            raise RuntimeError(f"einsum(): found '.' for {whose} that is not part of any ellipsis (...)")
        elif letter in _LETTERS:
            labels.append(letter)
        elif letter != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {equation.find(letter)} in the equation string "
                f"'{equation}', subscripts must be in [a-zA-Z]"
            )
    return labels


def _fill_ellipsis(labels, count):
    """`labels` with count, …, 2, 1 in place of the ellipsis: aligned on the right, as broadcasting does."""
    if _ELLIPSIS not in labels:
        return labels
    at = labels.index(_ELLIPSIS)
    return [*labels[:at], *range(count, 0, -1), *labels[at + 1 :]]


class _View(NamedTuple):
    """How an operand is brought into the form in which it is multiplied; what is None is not needed."""

    diagonals: tuple = ()
    sums: tuple | None = None
    order: tuple | None = None
    shape: tuple | None = None

    def of(self, tensor):
        """The view of one tensor."""
        for first, second in self.diagonals:
            tensor = tensor.diagonal(0, first, second)
        if self.sums is not None:
            tensor = tensor.sum(self.sums)
        if self.order is not None:
            tensor = tensor.permute(self.order)
        return tensor if self.shape is None else tensor.reshape(self.shape)


class _Product(NamedTuple):
    """Operands `first` and `second` leave the list, and their product takes the place of the first."""

    first: int
    second: int
    left: _View
    right: _View
    multiply: str
    shape: tuple | None

    def of(self, operands):
        """Multiply in the list of operands itself."""
        right = self.right.of(operands.pop(self.second))
        left = self.left.of(operands[self.first])
        product = getattr(cresset, self.multiply)(left, right)
        operands[self.first] = product if self.shape is None else product.reshape(self.shape)


@functools.lru_cache(maxsize=1024)
def _plan(equation, shapes):
    """The steps of an einsum over tensors of these shapes: a view of each operand, the products, a view of the result.

    While planning, an operand is a dict from the labels of its dimensions, in order, to their sizes.
    """
    labels, output = _labels(equation, tuple(map(len, shapes)))
    views, operands, size = [], [], {}
    for position, (shape, own) in enumerate(zip(shapes, labels)):
        diagonals, operand = _take_diagonals(shape, own, position)
        views.append(_View(diagonals) if diagonals else None)
        operands.append(operand)
        for label, length in operand.items():
            if size.setdefault(label, length) == 1:
                size[label] = length
            elif length not in (1, size[label]):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {length} for operand {position} "
                    f"which does not broadcast with previously seen size {size[label]}"
                )
    products = []
    while len(operands) > 1:
        first, second = _cheapest_pair(operands, size)
        b, a = operands.pop(second), operands.pop(first)
        step, result = _plan_product(a, b, kept=set(output).union(*operands))
        operands.insert(first, result)
        products.append(_Product(first, second, *step))
    (last,) = operands
    sums, last = _plan_sums(last, [label for label in last if label not in output])
    return views, products, _View(sums=sums, order=_order(last, output))


def _take_diagonals(shape, labels, position):
    """The pairs of dimensions to reduce to their diagonal, one after the other, until every label occurs once."""
    labels, lengths, diagonals = list(labels), list(shape), []
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if lengths[first] != lengths[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {position} but the sizes don't match, "
                    f"{lengths[second]} != {lengths[first]}"
                )
            diagonals.append((first, second))
            labels.append(label)  # A diagonal is the last dimension of the view.
            lengths.append(lengths[first])
            for kept in (labels, lengths):
                del kept[second], kept[first]
    return tuple(diagonals), dict(zip(labels, lengths))


def _cheapest_pair(operands, size):
    """The two operands whose product needs the fewest multiplications; of equals, the leftmost."""
    if len(operands) == 2:
        return 0, 1
    pairs = [(first, second) for second in range(len(operands)) for first in range(second)]
    return min(pairs, key=lambda pair: math.prod(size[label] for label in {**operands[pair[0]], **operands[pair[1]]}))


def _plan_sums(operand, labels):
    """The dimensions with these labels (None, if it has none), to be summed out, and the operand without them."""
    dims = tuple(dim for dim, label in enumerate(operand) if label in labels)
    return dims or None, {label: length for label, length in operand.items() if label not in labels}


def _order(operand, labels):
    """The permutation that puts the operand's dimensions into the order of `labels`; None if they are."""
    have = list(operand)
    return None if have == list(labels) else tuple(have.index(label) for label in labels)


def _plan_product(a, b, kept):
    """Views of two operands, how to multiply them and the shape of the product; and the product as an operand."""
    # A label that occurs in one of them only, or has size 1 in one only, is summed before the product.
    lone = [label for label in {**a, **b} if label not in kept and a.get(label) != b.get(label)]
    (a_sums, a), (b_sums, b) = _plan_sums(a, lone), _plan_sums(b, lone)
    summed = [label for label in a if label in b and label not in kept]
    if not summed:
        result = {label: b.get(label, 1) if a.get(label, 1) == 1 else a[label] for label in {**a, **b}}
        return (_aligned(a, a_sums, result), _aligned(b, b_sums, result), "mul", None), result
    batch = [label for label in a if label in kept and label in b and a[label] == b[label]]
    rows = [label for label in a if label not in batch and label not in summed]
    columns = [label for label in b if label not in batch and label not in summed]
    left = _grouped(a, a_sums, batch, rows, summed)
    right = _grouped(b, b_sums, batch, summed, columns)
    # A kept label with size 1 in one of them stands in both: the product has it once.
    rows = [label for label in rows if label not in columns or a[label] != 1]
    columns = [label for label in columns if label not in rows]
    result = {**{label: a[label] for label in (*batch, *rows)}, **{label: b[label] for label in columns}}
    is_matrix = len(batch) <= 1 and len(rows) == len(columns) == 1
    return (left, right, "bmm" if batch else "mm", None if is_matrix else tuple(result.values())), result


def _aligned(operand, sums, result):
    """The view whose dimensions are those of `result`, of size 1 where the operand has none."""
    order = _order(operand, [label for label in result if label in operand])
    shape = None if len(operand) == len(result) else tuple(operand.get(label, 1) for label in result)
    return _View(sums=sums, order=order, shape=shape)


def _grouped(operand, sums, batch, rows, columns):
    """The view as a matrix (a batch of matrices, if there is a batch) of the grouped dimensions."""
    groups = (batch, rows, columns) if batch else (rows, columns)
    order = _order(operand, [*batch, *rows, *columns])
    shape = tuple(math.prod(operand[label] for label in group) for group in groups)
    is_matrix = all(len(group) == 1 for group in groups)
    return _View(sums=sums, order=order, shape=None if is_matrix else shape)


@function(out=True, autocast={"cuda": "promote"})
def tensordot(a, b, dims=2):
    """Multiply two tensors and sum over pairs of their dimensions.

    Args:
        dims: the number of last dimensions of `a` to pair with the first of `b`, or two lists of dims.

    >>> cresset.tensordot(cresset.ones(2, 3), cresset.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    if isinstance(dims, cresset.Tensor):
        dims = dims.tolist()
    if is_integer(dims):
        dims = int(dims)
        if dims < 0:
            raise RuntimeError(f"tensordot: expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot: expects dims < ndim_a or ndim_b, but got dims={dims}")
        of_a, of_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        of_a, of_b = ([d] if is_integer(d) else list(d) for d in dims)
    if len(of_a) != len(of_b):
        raise RuntimeError(f"tensordot: both dimension lists should have same length, got {of_a} and {of_b}")
    of_a, of_b = wrap_dims(of_a, a.ndim, "tensordot"), wrap_dims(of_b, b.ndim, "tensordot")
    for dim_a, dim_b in zip(of_a, of_b):
        if a.size(dim_a) == b.size(dim_b):
            continue
        if b.size(dim_b) == 1:
            a = a.sum(dim_a, keepdim=True, dtype=a.dtype)
        elif a.size(dim_a) == 1:
            b = b.sum(dim_b, keepdim=True, dtype=b.dtype)
        else:
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.size(dim_a)} in dim {dim_a} "
                f"and second has size {b.size(dim_b)} in dim {dim_b}"
            )
    rows = [dim for dim in range(a.ndim) if dim not in of_a]
    columns = [dim for dim in range(b.ndim) if dim not in of_b]
    summed = math.prod(a.size(dim) for dim in of_a)
    left = a.permute(rows + of_a).reshape(math.prod(a.size(dim) for dim in rows), summed)
    right = b.permute(of_b + columns).reshape(summed, math.prod(b.size(dim) for dim in columns))
    return left.mm(right).reshape([a.size(dim) for dim in rows] + [b.size(dim) for dim in columns])


@function(method=True, name="ger")
@function(method=True, out="cast")
def outer(input, vec2):
    """The matrix of all products of an element of `input` and one of `vec2`.

    >>> cresset.outer(cresset.tensor([1, 2]), cresset.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.ndim}-D")
    return input.unsqueeze(1) * vec2


@function(method=True, out=True)
def inner(input, other):
    """The sums of products along the last dimensions of both.

    >>> cresset.inner(cresset.tensor([1, 2]), cresset.tensor([[3, 4], [5, 6]]))
    tensor([11, 17])
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.dtype != other.dtype:
        raise RuntimeError(f"inner: both inputs should have same dtype, got {input.dtype} and {other.dtype}")
    if input.size(-1) != other.size(-1):
        raise RuntimeError(
            "inner: the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@function(method=True, out=True, autocast={"cuda": "promote"})
def vdot(input, other):
    """The dot product of two vectors, the first one conjugated.

    >>> cresset.vdot(cresset.tensor([1j]), cresset.tensor([2j]))
    tensor(2.+0.j)
    """
    return name_node(input.conj().dot(other) if input.is_complex() else input.dot(other), "VdotBackward0")


@function(method=True, out="cast")
def kron(input, other):
    """Kronecker's product: each element of `input` times the whole of `other`.

    >>> cresset.kron(cresset.tensor([1, 2]), cresset.tensor([3, 4]))
    tensor([3, 4, 6, 8])
    """
    ndim = max(input.ndim, other.ndim)
    shape_a = (1,) * (ndim - input.ndim) + tuple(input.shape)
    shape_b = (1,) * (ndim - other.ndim) + tuple(other.shape)
    # a and b alternate in the dimensions of the product; merged in pairs they give the result.
    a = input.reshape([size for n in shape_a for size in (n, 1)])
    b = other.reshape([size for n in shape_b for size in (1, n)])
    product = forget_base((a * b).reshape([n * m for n, m in zip(shape_a, shape_b)]))
    return name_node(product, "UnsafeViewBackward0")


def multi_dot(tensors, who="multi_dot"):
    """The matrix product of a chain, in the order that needs the fewest multiplications.

    The first and the last may be vectors. `torch.linalg.multi_dot` and `chain_matmul` are this.
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"{who}(): expected at least 2 tensors but got {len(tensors)}")
    for position, tensor in enumerate(tensors):
        at_end = position in (0, len(tensors) - 1)
        if tensor.ndim != 2 and not (at_end and tensor.ndim == 1):
            raise RuntimeError(
                f"{who}(): tensor {position} must be {'1D or 2D' if at_end else '2D'} but got {tensor.ndim}D"
            )
    from_vector, to_vector = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if from_vector:
        tensors[0] = tensors[0].unsqueeze(0)
    if to_vector:
        tensors[-1] = tensors[-1].unsqueeze(1)
    for position, (left, right) in enumerate(zip(tensors, tensors[1:])):
        if left.size(1) != right.size(0):
            raise RuntimeError(
                f"{who}(): tensors {position} and {position + 1} with shapes {list(left.shape)} and "
                f"{list(right.shape)} cannot be multiplied"
            )
    split = _cheapest_splits((tensors[0].size(0), *(tensor.size(1) for tensor in tensors)))

    def product(first, last):
        if first == last:
            return tensors[first]
        middle = split[first, last]
        return product(first, middle).mm(product(middle + 1, last))

    result = product(0, len(tensors) - 1)
    if from_vector:
        result = result.squeeze(0)
    return result.squeeze(-1) if to_vector else result


def _cheapest_splits(sizes):
    """For each part (first, last) of the chain of matrices sizes[i] × sizes[i + 1]: after which one to split it. Of
    equal costs PyTorch takes the first place, but the last one in a chain of three.
    """
    count = len(sizes) - 1
    cost, split = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            costs = {
                middle: cost[first, middle]
                + cost[middle + 1, last]
                + sizes[first] * sizes[middle + 1] * sizes[last + 1]
                for middle in (range(last - 1, first - 1, -1) if count == 3 else range(first, last))
            }
            split[first, last] = min(costs, key=costs.get)
            cost[first, last] = costs[split[first, last]]
    return split


@function(out=True, autocast="lower")
def chain_matmul(*matrices):
    """The matrix product of a chain of matrices, in the order that needs the fewest multiplications.

    >>> cresset.chain_matmul(cresset.ones(1, 2), cresset.ones(2, 3), cresset.ones(3, 1))
    tensor([[6.]])
    """
    if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)):
        matrices = matrices[0]
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(f"chain_matmul(): Tensor dimension is {matrix.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices, "chain_matmul")


@function(method=True, inplace=True, out=True, autocast={"cpu": "plain", "cuda": "lower"})
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * (mat @ vec).

    >>> cresset.addmv(cresset.tensor([1, 1]), cresset.tensor([[1, 2], [3, 4]]), cresset.tensor([1, 1]))
    tensor([4, 8])
    """
    if not input.dtype == mat.dtype == vec.dtype:
        raise RuntimeError(
            f"addmv: input tensors must have the same dtype, but got {input.dtype}, {mat.dtype}, and {vec.dtype}"
        )
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"addmv: vector + matrix @ vector expected, got {input.ndim}D, {mat.ndim}D, {vec.ndim}D")
    if mat.size(1) != vec.size(0) or (input.ndim and input.size(0) not in (1, mat.size(0))):
        raise RuntimeError(
            f"addmv: size mismatch, got input {tuple(input.shape)}, mat {tuple(mat.shape)}, vec {tuple(vec.shape)}"
        )
    # A vector is a matrix of one column, and a 0-d or 1-element input broadcasts.
    input = input.reshape(-1, 1).expand(mat.size(0), 1)
    result = forget_base(cresset.addmm(input, mat, vec.unsqueeze(1), beta=beta, alpha=alpha).squeeze(1))
    return name_node(result, "AddmvBackward0")


@function(method=True, inplace=True, out="cast", autocast={"cpu": "plain", "cuda": "lower"})
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """beta * input + alpha * outer(vec1, vec2).

    >>> cresset.addr(cresset.ones(2, 2), cresset.tensor([1.0, 2.0]), cresset.tensor([3.0, 4.0]))
    tensor([[4., 5.],
            [7., 9.]])
    """
    return name_node(_plus_outer(input, vec1, vec2, beta, alpha), "AddrBackward0")


def _plus_outer(input, vec1, vec2, beta, alpha):
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    input = input.expand(vec1.size(0), vec2.size(0))
    column, row = vec1.unsqueeze(1), vec2.unsqueeze(0)
    dtype = cresset.promote_types(cresset.promote_types(vec1.dtype, vec2.dtype), input.dtype)
    for name, number in (("beta", beta), ("alpha", alpha)):
        if isinstance(number, bool) and dtype != cresset.bool:
            raise RuntimeError(f"addr: Boolean {name} only supported for Boolean results; these are {dtype}")
    if dtype in (cresset.float16, cresset.bfloat16):  # the numbers, each product and the sum are rounded
        beta, alpha = (cresset.tensor(number, dtype=dtype).item() for number in (beta, alpha))
        product = column.to(dtype) * alpha * row
        return product if beta == 0 else input.to(dtype) * beta + product
    if (dtype.is_floating_point or dtype.is_complex) and alpha == 0:  # unlike addmm's, this product is computed
        product = column.to(dtype) * row * alpha
        return product if beta == 0 else input * beta + product
    if dtype.is_floating_point or dtype.is_complex:
        return cresset.addmm(input.to(dtype), column.to(dtype), row.to(dtype), beta=beta, alpha=alpha)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, (float, complex)):
            raise RuntimeError(
                f"addr: For integral input tensors, argument {name} must not be a floating point number, got {factor}"
            )
    if dtype == cresset.bool:
        return (input & bool(beta)) | (column & row & bool(alpha))
    return input * beta + column * row * alpha


@function(method=True, inplace=True, out=True, autocast="lower")
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * the sum of the batch's matrix products.

    >>> cresset.addbmm(cresset.zeros(1, 1), cresset.ones(5, 1, 2), cresset.ones(5, 2, 1))
    tensor([[10.]])
    """
    if batch1.ndim != 3 or batch2.ndim != 3:
        raise RuntimeError(f"addbmm: batch1 and batch2 must be 3D tensors, got {batch1.ndim}D and {batch2.ndim}D")
    (count, n, k), (count2, k2, m) = batch1.shape, batch2.shape
    if count != count2:
        raise RuntimeError(f"addbmm: batch1 and batch2 must have same number of batches, got {count} and {count2}")
    if k != k2:
        raise RuntimeError(
            f"addbmm: Incompatible matrix sizes for bmm ({n}x{k} and {k2}x{m}): the inner dimensions differ"
        )
    if not input.dtype == batch1.dtype == batch2.dtype:
        raise RuntimeError(
            "addbmm: Input dtypes must be the same, got: "
            f"input {input.dtype}, batch1: {batch1.dtype}, batch2: {batch2.dtype}"
        )
    if input.dtype in (cresset.float16, cresset.bfloat16):  # rounded after each product
        result = input.expand(n, m)
        for number in range(count):
            result = cresset.addmm(result, batch1[number], batch2[number], beta=1 if number else beta, alpha=alpha)
        return name_node(result if count else result * beta, "AddbmmBackward0")
    # One product in which the batch is part of the summed dimension.
    left, right = batch1.transpose(0, 1).reshape(n, count * k), batch2.reshape(count * k, m)
    result = cresset.addmm(input.expand(n, m), left, right, beta=beta, alpha=alpha)
    return name_node(result, "AddbmmBackward0")


def _with_older_order(today):
    """Take the factors as numbers in front of what they multiply, too: addr(beta, input, alpha, vec1, vec2),
    x.addr(beta, alpha, vec1, vec2).
    """

    @functools.wraps(today)
    def either_order(*args, **kwargs):
        if len(args) not in (4, 5):
            return today(*args, **kwargs)
        *factors, first, second = args
        input = factors.pop(0 if isinstance(factors[0], cresset.Tensor) else 1)
        if isinstance(first, cresset.Tensor) and not any(
            isinstance(factor, cresset.Tensor) and factor.dim() for factor in factors
        ):
            name = today.__name__
            warnings.warn(
                f"This overload of {name} is deprecated; write {name}(input, first, second, beta=beta, alpha=alpha)",
                stacklevel=2,
            )
            return today(input, first, second, **dict(zip(("beta", "alpha"), factors, strict=False)), **kwargs)
        return today(*args, **kwargs)

    return either_order


for _name in ("addmv", "addr", "addbmm"):
    functions[_name] = methods[_name] = _with_older_order(functions[_name])
    methods[_name + "_"] = _with_older_order(methods[_name + "_"])

functions_in_place("addmv_")
