"""cresset in one file: the whole idea in pure Python, to be read from top to bottom.

A formula is a Python function, written once. Called with numbers it computes, with Expressions it prints C, with
Tensors it is an operator that can be differentiated as often as you like. The real thing adds dtypes, devices, speed
and PyTorch's API.

    python docs/cresset_in_one_file.py
"""

import inspect
import itertools
import math

# ---- Operators: what every one has is a kernel (`run`) and a derivative ----------------------------------------------


class Operator:
    """A named function of tensors. Its derivative is made of operators, so it can itself be differentiated."""

    def __init__(self, run):
        self.run, self.name, self.rule = run, run.__name__, None
        self.parameters = list(inspect.signature(run).parameters)

    def derivative(self, rule):
        """The parameters of `rule` name what a call keeps for backward: arguments, `output` and the incoming `grad`."""
        self.rule, self.keeps = rule, list(inspect.signature(rule).parameters)

    def __call__(self, *args):
        """The call path: run the kernel; write down the call if somebody may ask for its gradient."""
        result = self.run(*args)
        if Node.recording and any(isinstance(a, Tensor) and a.requires_grad for a in args):
            result.node = Node(self, args, result)
        return result

    def gradients(self, grad, saved):
        """One function per argument, called only for the gradients that are needed."""
        return self.rule(*({"grad": grad, **saved}[name] for name in self.keeps))


class Pointwise(Operator):
    """An operator that is a formula for one element: spelled `c` in C, or made of other formulas."""

    def __init__(self, formula, c=None, name=None):
        super().__init__(formula)
        self.formula, self.c, self.name, self.run = formula, c, name or formula.__name__, self.loop

    def __call__(self, *values):
        if any(isinstance(v, Tensor) for v in values):
            return super().__call__(*(v if isinstance(v, Tensor) else tensor(v) for v in values))
        if self.c and any(isinstance(v, Expression) for v in values):
            return Expression(self, *values)
        return self.formula(*values)

    def loop(self, *tensors):
        shape = broadcast(*(t.shape for t in tensors))
        rows = zip(*(expand.run(t, shape).elements() for t in tensors), strict=True)
        return Tensor([self.formula(*row) for row in rows], shape)

    def local_derivatives(self, values):
        slopes = self.rule(*(values[name] for name in self.keeps))
        return slopes if isinstance(slopes, tuple) else (slopes,)

    def gradients(self, grad, saved):
        slopes = self.local_derivatives(saved)
        return [lambda slope=slope: grad * slope for slope in slopes]


class Arithmetic:
    """Python's operators, for everything a formula may be called with."""

    __add__, __radd__ = (lambda x, y: add(x, y)), (lambda x, y: add(y, x))
    __sub__, __rsub__ = (lambda x, y: add(x, neg(y))), (lambda x, y: add(y, neg(x)))
    __mul__, __rmul__ = (lambda x, y: mul(x, y)), (lambda x, y: mul(y, x))
    __truediv__, __rtruediv__ = (lambda x, y: div(x, y)), (lambda x, y: div(y, x))
    __neg__ = lambda x: neg(x)  # noqa: E731


# ---- Formulas --------------------------------------------------------------------------------------------------------

add = Pointwise(lambda x, y: x + y, "{} + {}", "add")
mul = Pointwise(lambda x, y: x * y, "{} * {}", "mul")
div = Pointwise(lambda x, y: x / y, "{} / {}", "div")
neg = Pointwise(lambda x: -x, "-{}", "neg")
exp = Pointwise(lambda x: math.exp(x), "exp({})", "exp")

add.derivative(lambda: (1, 1))
mul.derivative(lambda x, y: (y, x))
div.derivative(lambda x, y: (1 / y, -x / (y * y)))
neg.derivative(lambda: -1)
exp.derivative(lambda output: output)


@Pointwise
def sigmoid(x):
    """Between 0 and 1. Its derivative needs the result only, so the input may be freed."""
    return 1 / (1 + exp(-x))


@sigmoid.derivative
def _(output):
    return output * (1 - output)


# ---- A formula called with Expressions writes itself down ------------------------------------------------------------


class Expression(Arithmetic):
    """A symbolic value. Equal expressions are one object, so what is used twice is computed once."""

    known = {}

    def __new__(cls, op, *inputs):
        return cls.known.setdefault((op, inputs), super().__new__(cls))

    def __init__(self, op, *inputs):
        self.op, self.inputs = op, inputs


def print_c(name, arguments, result):
    """One C loop for one result: the pass that makes a kernel of a formula, or of many formulas at once."""
    lines, spelled = [], {}

    def spell(value):
        if not isinstance(value, Expression):
            return repr(float(value))
        if isinstance(value.op, str):
            return f"{value.op}[i]"
        if value not in spelled:
            text = value.op.c.format(*map(spell, value.inputs))
            spelled[value] = f"v{len(spelled)}"
            lines.append(f"    double {spelled[value]} = {text};")
        return spelled[value]

    lines.append(f"    out[i] = {spell(result)};")
    inputs = "".join(f"const double* {a}, " for a in arguments)
    head = f"void {name}({inputs}double* out, long n) {{", "  for (long i = 0; i < n; i++) {"
    return "\n".join([*head, *lines, "  }", "}"])


def kernels(op):
    """The C of a formula and of the gradient of each of its inputs."""
    inputs = {name: Expression(name) for name in op.parameters}
    values = {**inputs, "output": op(*inputs.values())}
    yield print_c(op.name, inputs, values["output"])
    for name, slope in zip(inputs, op.local_derivatives(values), strict=True):
        yield print_c(f"{op.name}_backward_{name}", ["grad", *inputs], Expression("grad") * slope)


# ---- Tensors: a view of a storage ------------------------------------------------------------------------------------


class Tensor(Arithmetic):
    """Element (i, j, ...) is storage[offset + i * strides[0] + j * strides[1] + ...]. Views share the storage."""

    def __init__(self, storage, shape, strides=None, offset=0):
        self.storage, self.shape, self.offset = storage, tuple(shape), offset
        self.strides = strides or tuple(math.prod(self.shape[d + 1 :]) for d in range(len(self.shape)))
        self.leaf, self.node, self.grad = False, None, None

    requires_grad = property(lambda self: self.leaf or self.node is not None)
    T = property(lambda self: transpose(self))
    __matmul__ = lambda self, other: matmul(self, other)  # noqa: E731

    def elements(self):
        for index in itertools.product(*map(range, self.shape)):
            yield self.storage[self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))]

    def tolist(self):
        flat = list(self.elements())
        for size in reversed(self.shape[1:]):
            flat = [flat[i : i + size] for i in range(0, len(flat), size)]
        return flat if self.shape else flat[0]

    def sum(self):
        return fit(self, ())

    def backward(self):
        run_backward(self, tensor(1.0))


def tensor(values, requires_grad=False):
    shape, flat = [], [values]
    while isinstance(flat[0], list):
        shape.append(len(flat[0]))
        flat = [v for row in flat for v in row]
    result = Tensor(flat, shape)
    result.leaf = requires_grad
    return result


def broadcast(*shapes):
    """The shape that all fit into: sizes are compared from the right, and a size of one stretches."""
    columns = itertools.zip_longest(*(reversed(s) for s in shapes), fillvalue=1)
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in columns)[::-1]


# ---- Operators with their own kernels. A view's kernel moves no data -------------------------------------------------


@Operator
def expand(x, shape):
    new = len(shape) - len(x.shape)
    stretched = (0 if n != m else s for n, m, s in zip(x.shape, shape[new:], x.strides, strict=True))
    return Tensor(x.storage, shape, (*[0] * new, *stretched), x.offset)


@Operator
def fit(x, shape):
    """Sum `x` to a shape that broadcasts to its own: what a gradient needs after its input was stretched."""
    result = Tensor([0.0] * math.prod(shape), shape)
    places = expand.run(Tensor(range(len(result.storage)), shape), x.shape)
    for place, value in zip(places.elements(), x.elements(), strict=True):
        result.storage[place] += value
    return result


@Operator
def transpose(x):
    return Tensor(x.storage, x.shape[::-1], x.strides[::-1], x.offset)


@Operator
def matmul(a, b):
    rows, columns = a.tolist(), transpose.run(b).tolist()
    dots = [sum(x * y for x, y in zip(row, column, strict=True)) for row in rows for column in columns]
    return Tensor(dots, (a.shape[0], b.shape[1]))


@expand.derivative
def _(grad, x):
    yield lambda: fit(grad, x.shape)


@fit.derivative
def _(grad, x):
    yield lambda: expand(grad, x.shape)


@transpose.derivative
def _(grad):
    yield lambda: grad.T


@matmul.derivative
def _(grad, a, b):
    """With C = A B:  dA = dC Bᵀ  and  dB = Aᵀ dC."""
    yield lambda: grad @ b.T
    yield lambda: a.T @ grad


# ---- Automatic differentiation ---------------------------------------------------------------------------------------


class Node:
    """One recorded call, numbered in the order of time."""

    recording, count = True, itertools.count()

    def __init__(self, op, args, output):
        self.op, self.args, self.order = op, args, next(Node.count)
        available = {**dict(zip(op.parameters, args, strict=True)), "output": output}
        self.saved = {name: value for name, value in available.items() if name in op.keeps}


def run_backward(output, grad, create_graph=False):
    """Walk from the latest call to the first. A later call never feeds an earlier one, so each is met once."""
    waiting = {output: grad}
    before, Node.recording = Node.recording, create_graph
    while waiting:
        t = max(waiting, key=lambda t: t.node.order if t.node else -1)
        grad = waiting.pop(t)
        if grad.shape != t.shape:
            grad = fit(grad, t.shape)
        if t.node is None:
            t.grad = grad if t.grad is None else t.grad + grad
            continue
        for input, gradient in zip(t.node.args, t.node.op.gradients(grad, t.node.saved), strict=False):
            if input.requires_grad:
                waiting[input] = waiting[input] + gradient() if input in waiting else gradient()
    Node.recording = before


def main():
    print("A number:    sigmoid(2.0) =", sigmoid(2.0))
    print("Expressions:", *kernels(sigmoid), sep="\n")

    x = tensor(2.0, requires_grad=True)
    run_backward(sigmoid(x), tensor(1.0), create_graph=True)
    slope, x.grad = x.grad, None
    slope.backward()
    print(f"Tensors:     sigmoid'(2) = {slope.tolist():.6f}, sigmoid''(2) = {x.grad.tolist():.6f}")

    inputs, target = tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), tensor([[0.0], [1.0], [1.0], [0.0]])
    start = [[0.9, -0.7, 0.4], [0.8, -0.9, -0.5]], [0.1, 0.2, -0.3], [[0.7], [-0.6], [0.5]], [0.0]
    weights = [tensor(w, requires_grad=True) for w in start]
    for step in range(1001):
        w1, b1, w2, b2 = weights
        error = sigmoid(sigmoid(inputs @ w1 + b1) @ w2 + b2) - target
        loss = (error * error).sum()
        loss.backward()
        weights = [tensor((w - 2.0 * w.grad).tolist(), requires_grad=True) for w in weights]
        if step % 250 == 0:
            print(f"Training:    step {step:4d}  loss {loss.tolist():.4f}")
    return loss.tolist()


if __name__ == "__main__":
    main()
