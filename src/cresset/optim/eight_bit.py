"""Adam8bit and AdamW8bit: Adam whose state takes two bytes an element instead of eight."""

import functools

import cresset
from cresset import _native

from .adam import Adam
from .optimizer import number

__all__ = ["Adam8bit", "AdamW8bit"]

_BLOCK = 256  # kEightBitBlock in native/ops/update_eight_bit.h
_DTYPES = (cresset.float32, cresset.bfloat16, cresset.float16)
_KEPT = ("state1", "state2", "absmax1", "absmax2", "qmap1", "qmap2")


@functools.lru_cache(2)
def _values(signed):
    """The 256 numbers that a byte stands for, ascending: seven powers of ten down from 1, the higher the finer; each
    power's part from 0.1 to 1 is cut into equal pieces, and its values are their middles."""
    values = [0.0, 1.0]
    for power in range(7):
        pieces = 2 ** (power + (not signed))
        for piece in range(pieces):
            middle = 0.1 + 0.9 * (piece + 0.5) / pieces
            values += [sign * middle * 10.0 ** (power - 6) for sign in ((1, -1) if signed else (1,))]
    return sorted(values)


class Adam8bit(Adam):
    """Adam whose two means are kept in 8 bits, each block of 256 elements with a scale of its own.

    Memory is 2.03 bytes for each element of a parameter instead of 8. The step itself computes in single precision. The
    state has the names and the numbers of bitsandbytes': `state1` and `state2` (bytes), `absmax1` and `absmax2` (the
    scales), `qmap1` and `qmap2` (what the bytes stand for). Parameters of fewer than `min_8bit_size` elements, and
    those whose elements do not lie one after the other or are not float32, bfloat16 or float16, have the state of Adam.

    Args:
        betas: how much of the old means is kept at each step.
        weight_decay: adds weight_decay * w to the gradient; AdamW8bit shrinks w by lr * weight_decay instead.
        min_8bit_size: what smaller parameters have is kept in full.

    >>> w = nn.Parameter(cresset.ones(4096))
    >>> optimizer = optim.Adam8bit([w], lr=0.5)
    >>> w.grad = cresset.full((4096,), 5.0)
    >>> optimizer.step()
    >>> round(w[0].item(), 5), optimizer.state[w]["state1"].dtype
    (0.5, torch.uint8)
    """

    _decoupled = False

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, *, min_8bit_size=4096):
        if min_8bit_size < 0:
            raise ValueError(f"{type(self).__name__}: min_8bit_size must be at least 0, got {min_8bit_size}")
        super().__init__(params, lr, betas, eps, weight_decay, decoupled_weight_decay=self._decoupled)
        self.defaults["min_8bit_size"] = min_8bit_size
        for group in self.param_groups:
            group.setdefault("min_8bit_size", min_8bit_size)

    def _is_small(self, param, group):
        kept = self.state.get(param)
        if kept:
            return "exp_avg" in kept
        return param.numel() < group["min_8bit_size"] or param.dtype not in _DTYPES or not param.is_contiguous()

    def _calls(self, fresh=()):
        calls = []
        for variant, numbers, group in super()._calls(fresh):
            small = [param for param in group["params"] if self._is_small(param, group)]
            calls.append((variant, numbers, {**group, "params": small}))
        return calls

    def step(self, closure=None):
        """Change all parameters that have a gradient.

        Args:
            closure: computes the loss and the gradients anew, and returns the loss.
        """
        if self._has_parts:
            raise NotImplementedError(f"{type(self).__name__}: distributed parameters are not supported")
        loss = super().step(closure)
        with cresset.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None and not self._is_small(param, group):
                        self._step_in_8_bits(param, group)
        return loss

    def _step_in_8_bits(self, param, group):
        if param.grad.layout != cresset.strided:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
        state = self.state[param]
        if not state:
            blocks = -(-param.numel() // _BLOCK)
            state["step"] = 0
            for place, signed in ((1, True), (2, False)):
                values = cresset.tensor(_values(signed), dtype=cresset.float32)
                nearest_zero = int((values == 0).nonzero())
                state[f"state{place}"] = cresset.full_like(param, nearest_zero, dtype=cresset.uint8)
                state[f"absmax{place}"] = cresset.zeros(blocks, dtype=cresset.float32, device=param.device)
                state[f"qmap{place}"] = values.to(param.device)
        state["step"] += 1
        first, second, largest, largest_square, values, values_of_squares = (state[name] for name in _KEPT)
        beta1, beta2 = map(number, group["betas"])
        _native.adam_in_8_bits(
            param.detach(), param.grad.detach().contiguous(), (first, second), (largest, largest_square),
            (values, values_of_squares),
            (number(group["lr"]), beta1, beta2, number(group["eps"]), number(group["weight_decay"])),
            int(state["step"]), group["decoupled_weight_decay"],
        )  # fmt: skip

    def load_state_dict(self, state_dict):
        """Take over the state; bytes stay bytes, whatever the dtype of their parameter."""
        kept = state_dict["state"]
        bare = {
            k: {n: v for n, v in s.items() if n not in _KEPT} if isinstance(s, dict) else s for k, s in kept.items()
        }
        super().load_state_dict({**state_dict, "state": bare})
        params = [param for group in self.param_groups for param in group["params"]]
        ids = [k for group in state_dict["param_groups"] for k in group["params"]]
        for k, param in zip(ids, params, strict=True):
            for name in _KEPT:
                if k in kept and name in kept[k]:
                    self.state[param][name] = kept[k][name].to(param.device, copy=True)
                    if name.startswith("state") and self.state[param][name].dtype != cresset.uint8:
                        raise ValueError(
                            f"{type(self).__name__}: {name} is of dtype {self.state[param][name].dtype}, not uint8"
                        )


class AdamW8bit(Adam8bit):
    """Adam8bit that shrinks the weights by lr * weight_decay, apart from the gradient.

    >>> w = nn.Parameter(cresset.ones(4096))
    >>> w.grad = cresset.zeros(4096)
    >>> optim.AdamW8bit([w], lr=0.1, weight_decay=0.5).step()
    >>> round(w[0].item(), 5)
    0.95
    """

    _decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, *, min_8bit_size=4096):
        super().__init__(params, lr, betas, eps, weight_decay, min_8bit_size=min_8bit_size)
