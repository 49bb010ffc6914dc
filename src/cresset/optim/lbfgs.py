"""L-BFGS: a quasi-Newton method that remembers its last steps, with a line search that looks for the strong Wolfe
conditions.
"""

import cresset

from .optimizer import Optimizer


class LBFGS(Optimizer):
    """Minimize with an approximate inverse Hessian, built from the last `history_size` steps.

    `step` needs a closure that computes loss and gradients anew, since it is called several times in one step.

    Args:
        max_iter: iterations in one step.
        max_eval: calls of the closure in one step; 1.25 * max_iter by default.
        tolerance_grad: stop when the largest gradient is below it.
        tolerance_change: stop when loss and parameters change less.
        line_search_fn: "strong_wolfe" or None, which takes steps of lr.
    """

    def __init__(
        self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
        line_search_fn=None,
    ):  # fmt: skip
        if isinstance(lr, cresset.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self):
        pieces = []
        for p in self._params:
            grad = p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
            pieces.append(cresset.view_as_real(grad).reshape(-1) if grad.is_complex() else grad)
        return cresset.cat(pieces)

    def _move(self, length, direction):
        """Add `length * direction` to the parameters."""
        start = 0
        for p in self._params:
            target = cresset.view_as_real(p) if p.is_complex() else p
            count = target.numel()
            target.add_(direction[start : start + count].view_as(target), alpha=length)
            start += count

    def _evaluate_at(self, closure, start, length, direction):
        """Loss and gradient at `start + length * direction`; the parameters are put back."""
        self._move(length, direction)
        loss = float(closure())
        grad = self._flat_grad()
        for p, old in zip(self._params, start, strict=True):
            p.copy_(old)
        return loss, grad

    @cresset.no_grad()
    def step(self, closure):
        """Run up to `max_iter` iterations; returns the loss before them."""
        closure = cresset.enable_grad()(closure)
        group = self.param_groups[0]
        lr = float(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        memory = _Memory(state, group["history_size"])
        direction, length = state.get("d"), state.get("t")
        last_grad, last_loss = state.get("prev_flat_grad"), state.get("prev_loss")

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction = grad.neg()
                memory.clear()
            else:
                memory.add(grad.sub(last_grad), direction.mul(length))
                direction = memory.apply(grad.neg())
            last_grad = grad.clone() if last_grad is None else last_grad.copy_(grad)
            last_loss = loss

            length = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            calls = 0
            if group["line_search_fn"] is None:
                self._move(float(length), direction)
                if iteration != group["max_iter"]:
                    loss = float(closure())
                    grad = self._flat_grad()
                    calls = 1
            elif group["line_search_fn"] != "strong_wolfe":
                raise RuntimeError("only 'strong_wolfe' is supported")
            else:
                start = [p.clone(memory_format=cresset.contiguous_format) for p in self._params]

                def evaluate(t, d, start=start):
                    return self._evaluate_at(closure, start, t, d)

                loss, grad, length, calls = _strong_wolfe(
                    evaluate, float(length), direction, loss, grad, slope, tolerance_change=group["tolerance_change"]
                )
                self._move(length, direction)
            evaluations += calls
            state["func_evals"] += calls

            if (
                iteration == group["max_iter"]
                or evaluations >= group["max_eval"]
                or grad.abs().max() <= group["tolerance_grad"]
                or direction.mul(length).abs().max() <= group["tolerance_change"]
                or abs(loss - last_loss) < group["tolerance_change"]
            ):
                break

        state["d"], state["t"] = direction, length
        memory.store()
        state["prev_flat_grad"], state["prev_loss"] = last_grad, last_loss
        return first_loss


class _Memory:
    """The last steps s and changes of the gradient y, with 1 / (y s): an inverse Hessian, never written out."""

    def __init__(self, state, size):
        self.state, self.size = state, size
        self.changes, self.steps, self.ro = state.get("old_dirs"), state.get("old_stps"), state.get("ro")
        self.scale = state.get("H_diag")

    def clear(self):
        self.changes, self.steps, self.ro, self.scale = [], [], [], 1

    def add(self, change, step):
        curvature = change.dot(step)
        if curvature <= 1e-10:
            return
        if len(self.changes) == self.size:
            for kept in (self.changes, self.steps, self.ro):
                kept.pop(0)
        self.changes.append(change)
        self.steps.append(step)
        self.ro.append(1.0 / curvature)
        self.scale = curvature / change.dot(change)

    def apply(self, q):
        """The inverse Hessian times `q`, by the two-loop recursion."""
        self.state.setdefault("al", [None] * self.size)
        factors = self.state["al"]
        for i in reversed(range(len(self.changes))):
            factors[i] = self.steps[i].dot(q) * self.ro[i]
            q.add_(self.changes[i] * -factors[i])
        r = q * self.scale
        for i in range(len(self.changes)):
            r.add_(self.steps[i] * (factors[i] - self.changes[i].dot(r) * self.ro[i]))
        return r

    def store(self):
        self.state.update(old_dirs=self.changes, old_stps=self.steps, ro=self.ro, H_diag=self.scale)


def _cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with given values and slopes is smallest, within `bounds`."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


def _strong_wolfe(evaluate, t, d, f, g, slope, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_calls=25):
    """A length t along d at which the loss has fallen enough and the slope is small enough.

    First the interval is widened until it brackets such a point, then it is narrowed. Returns the loss, the gradient
    and the length found, and the number of evaluations.
    """
    slope = float(slope)
    longest = float(d.abs().max())
    g = g.clone()
    f_new, g_new = evaluate(t, d)
    calls = 1
    slope_new = float(g_new.dot(d))

    last_t, last_f, last_g, last_slope = 0.0, f, g, slope
    done, iteration = False, 0
    bracket = None
    while iteration < max_calls:
        if f_new > f + c1 * t * slope or (iteration > 1 and f_new >= last_f):
            bracket = [[last_t, last_f, last_g, last_slope], [t, f_new, g_new.clone(), slope_new]]
            break
        if abs(slope_new) <= -c2 * slope:
            bracket, done = [[t, f_new, g_new, slope_new]], True
            break
        if slope_new >= 0:
            bracket = [[last_t, last_f, last_g, last_slope], [t, f_new, g_new.clone(), slope_new]]
            break
        low, high = t + 0.01 * (t - last_t), t * 10
        previous = t
        t = _cubic_minimum(last_t, last_f, last_slope, t, f_new, slope_new, bounds=(low, high))
        last_t, last_f, last_g, last_slope = previous, f_new, g_new.clone(), slope_new
        f_new, g_new = evaluate(t, d)
        calls += 1
        slope_new = float(g_new.dot(d))
        iteration += 1
    if bracket is None:
        bracket = [[0.0, f, g, slope], [t, f_new, g_new, slope_new]]

    stuck = False
    low, high = (0, 1) if len(bracket) == 1 or bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and iteration < max_calls:
        ends = sorted((bracket[0][0], bracket[1][0]))
        if (ends[1] - ends[0]) * longest < tolerance_change:
            break
        t = _cubic_minimum(*(bracket[0][k] for k in (0, 1, 3)), *(bracket[1][k] for k in (0, 1, 3)))
        # A point too close to an end, for the second time or at the very end: step away from it.
        margin = 0.1 * (ends[1] - ends[0])
        if min(ends[1] - t, t - ends[0]) < margin:
            if stuck or t >= ends[1] or t <= ends[0]:
                t = ends[1] - margin if abs(t - ends[1]) < abs(t - ends[0]) else ends[0] + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        f_new, g_new = evaluate(t, d)
        calls += 1
        slope_new = float(g_new.dot(d))
        iteration += 1
        point = [t, f_new, g_new.clone(), slope_new]
        if f_new > f + c1 * t * slope or f_new >= bracket[low][1]:
            bracket[high] = point
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(slope_new) <= -c2 * slope:
                done = True
            elif slope_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
    t, f_new, g_new, _ = bracket[low]
    return f_new, g_new, t, calls
