"""The steps of the optimizers: what each does to a parameter and to what it keeps for it.

The order of the operations is PyTorch's, so that the numbers are too. Names are those of the optimizers' settings and
of their state.
"""

from .arithmetic import abs, lerp, sign
from .definition import Flag
from .exponential import pow, sqrt
from .selection import clamp, maximum, where
from .update import Single, update


def _directed(grad, maximize):
    """The gradient to go down: turned round when the aim is to go up."""
    return where(maximize != 0, -grad, grad)


def _decayed(grad, param, weight_decay):
    """The gradient with that of weight_decay / 2 * param^2."""
    return where(weight_decay != 0, grad + weight_decay * param, grad)


def _shrunk(param, lr, weight_decay, decoupled_weight_decay):
    """The parameter after a decay of its own, apart from the gradient."""
    return where(decoupled_weight_decay != 0, param * (1 - lr * weight_decay), param)


def _coupled(weight_decay, decoupled_weight_decay):
    """The decay that goes through the gradient."""
    return where(decoupled_weight_decay != 0, 0.0, weight_decay)


def _mean_square(mean, value, kept):
    """The running mean of value^2."""
    return mean * kept + (1 - kept) * value * value


@update
def sgd(
    param, grad, momentum_buffer, *, lr, momentum, dampening, weight_decay, maximize, has_momentum: Flag, nesterov: Flag
):
    """w -= lr * b with b = momentum * b + (1 - dampening) * g."""
    if nesterov and not has_momentum:
        return None
    grad = _decayed(_directed(grad, maximize), param, weight_decay)
    if has_momentum:
        momentum_buffer = momentum_buffer * momentum + (1 - dampening) * grad
        grad = grad + momentum * momentum_buffer if nesterov else momentum_buffer
    return {"param": param + -lr * grad, "momentum_buffer": momentum_buffer}


@update
def adam(
    param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step: Single,
    *, lr, beta1, beta2, eps, weight_decay, maximize, decoupled_weight_decay, amsgrad: Flag,
):  # fmt: skip
    """w -= lr * m / (sqrt(v) + eps), with m and v the running means of g and g^2, corrected for their start at zero."""
    step = step + 1
    grad = _decayed(_directed(grad, maximize), param, _coupled(weight_decay, decoupled_weight_decay))
    param = _shrunk(param, lr, weight_decay, decoupled_weight_decay)
    exp_avg = lerp(exp_avg, grad, 1 - beta1)
    exp_avg_sq = _mean_square(exp_avg_sq, grad, beta2)
    square = exp_avg_sq
    if amsgrad:
        square = max_exp_avg_sq = maximum(max_exp_avg_sq, exp_avg_sq)
    root = sqrt(square) / sqrt(1 - pow(beta2, step)) + eps
    param = param + -(lr / (1 - pow(beta1, step))) * exp_avg / root
    return {
        "param": param, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "max_exp_avg_sq": max_exp_avg_sq, "step": step,
    }  # fmt: skip


@update
def adamax(param, grad, exp_avg, exp_inf, step: Single, *, lr, beta1, beta2, eps, weight_decay, maximize):
    """Adam with a falling maximum of |g| in place of the root of the mean of g^2."""
    step = step + 1
    grad = _decayed(_directed(grad, maximize), param, weight_decay)
    exp_avg = lerp(exp_avg, grad, 1 - beta1)
    exp_inf = maximum(exp_inf * beta2, abs(grad) + eps)
    param = param + -(lr / (1 - pow(beta1, step))) * exp_avg / exp_inf
    return {"param": param, "exp_avg": exp_avg, "exp_inf": exp_inf, "step": step}


@update
def nadam(
    param, grad, exp_avg, exp_avg_sq, step: Single, mu_product: Single,
    *, lr, beta1, beta2, eps, weight_decay, momentum_decay, maximize, decoupled_weight_decay,
):  # fmt: skip
    """Adam that looks one step ahead, with a momentum that grows by a schedule."""
    step = step + 1
    grad = _decayed(_directed(grad, maximize), param, _coupled(weight_decay, decoupled_weight_decay))
    param = _shrunk(param, lr, weight_decay, decoupled_weight_decay)
    mu = beta1 * (1 - 0.5 * pow(0.96, step * momentum_decay))
    next_mu = beta1 * (1 - 0.5 * pow(0.96, (step + 1) * momentum_decay))
    mu_product = mu_product * mu
    exp_avg = lerp(exp_avg, grad, 1 - beta1)
    exp_avg_sq = _mean_square(exp_avg_sq, grad, beta2)
    root = sqrt(exp_avg_sq / (1 - pow(beta2, step))) + eps
    param = param + -lr * (1 - mu) / (1 - mu_product) * grad / root
    param = param + -lr * next_mu / (1 - mu_product * next_mu) * exp_avg / root
    return {"param": param, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "step": step, "mu_product": mu_product}


@update
def radam(
    param, grad, exp_avg, exp_avg_sq, step: Single,
    *, lr, beta1, beta2, eps, weight_decay, maximize, decoupled_weight_decay,
):  # fmt: skip
    """Adam that trusts the mean of g^2 only as far as its variance allows, and not at all in the first steps."""
    step = step + 1
    grad = _decayed(_directed(grad, maximize), param, _coupled(weight_decay, decoupled_weight_decay))
    param = _shrunk(param, lr, weight_decay, decoupled_weight_decay)
    exp_avg = lerp(exp_avg, grad, 1 - beta1)
    exp_avg_sq = _mean_square(exp_avg_sq, grad, beta2)
    correction = 1 - pow(beta2, step)
    # rho is the length of the mean over g^2; up to 5 its variance is not defined.
    limit = 2 / (1 - beta2) - 1
    rho = limit - 2 * step * pow(beta2, step) / correction
    rectified = (rho - 4) * (rho - 2) * limit / where(rho > 5, (limit - 4) * (limit - 2) * rho, 1.0)
    move = exp_avg / (1 - pow(beta1, step)) * lr
    trusted = move * (sqrt(correction) / (sqrt(exp_avg_sq) + eps)) * sqrt(where(rho > 5, rectified, 0.0))
    return {
        "param": param - where(rho > 5, trusted, move), "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "step": step,
    }  # fmt: skip


@update
def adagrad(param, grad, sum, step: Single, *, lr, lr_decay, weight_decay, eps, maximize):
    """w -= lr * g / (sqrt(s) + eps), with s the sum of all g^2."""
    step = step + 1
    grad = _decayed(_directed(grad, maximize), param, weight_decay)
    rate = lr / (1 + (step - 1) * lr_decay)
    sum = sum + grad * grad
    return {"param": param + -rate * grad / (sqrt(sum) + eps), "sum": sum, "step": step}


@update
def adadelta(param, grad, square_avg, acc_delta, step: Single, *, lr, rho, eps, weight_decay, maximize):
    """w -= lr * d with d = g * sqrt(u + eps) / sqrt(v + eps), u and v the running means of d^2 and g^2."""
    grad = _decayed(_directed(grad, maximize), param, weight_decay)
    square_avg = _mean_square(square_avg, grad, rho)
    delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * grad
    acc_delta = _mean_square(acc_delta, delta, rho)
    return {"param": param + -lr * delta, "square_avg": square_avg, "acc_delta": acc_delta, "step": step + 1}


@update
def rmsprop(
    param, grad, square_avg, grad_avg, momentum_buffer, step: Single,
    *, lr, alpha, eps, weight_decay, momentum, maximize, centered: Flag, has_momentum: Flag,
):  # fmt: skip
    """w -= lr * g / (sqrt(v) + eps), with v the running mean of g^2."""
    grad = _decayed(_directed(grad, maximize), param, weight_decay)
    square_avg = _mean_square(square_avg, grad, alpha)
    square = square_avg
    if centered:
        grad_avg = lerp(grad_avg, grad, 1 - alpha)
        square = square_avg - grad_avg * grad_avg
    root = sqrt(square) + eps
    if has_momentum:
        momentum_buffer = momentum_buffer * momentum + grad / root
        param = param + -lr * momentum_buffer
    else:
        param = param + -lr * grad / root
    return {
        "param": param, "square_avg": square_avg, "grad_avg": grad_avg, "momentum_buffer": momentum_buffer,
        "step": step + 1,
    }  # fmt: skip


@update
def rprop(param, grad, prev, step_size, step: Single, *, etaminus, etaplus, smallest, largest, maximize):
    """Steps that look at the sign of the gradient only, and grow while it stays the same."""
    grad = _directed(grad, maximize)
    kept = grad * prev
    grown = where(kept > 0, step_size * etaplus, where(kept < 0, step_size * etaminus, step_size))
    step_size = clamp(grown, smallest, largest)
    grad = where(kept < 0, 0.0, grad)  # after a change of sign: no step, and a fresh start
    return {"param": param - sign(grad) * step_size, "prev": grad, "step_size": step_size, "step": step + 1}


@update
def asgd(param, grad, ax, step: Single, eta: Single, mu: Single, *, lr, lambd, alpha, t0, weight_decay, maximize):
    """SGD with a falling rate, that also keeps the mean of the parameters."""
    step = step + 1
    grad = _decayed(_directed(grad, maximize), param, weight_decay)
    param = param * (1 - lambd * eta) + -eta * grad
    ax = where(mu != 1, ax + (param - ax) * mu, param)
    return {
        "param": param, "ax": ax, "step": step, "eta": lr / pow(1 + lambd * lr * step, alpha),
        "mu": 1 / where(step - t0 > 1, step - t0, 1.0),
    }  # fmt: skip
