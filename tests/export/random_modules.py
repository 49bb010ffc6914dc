"""Random modules with views and writes in place: the same results, inputs and buffers in every recorded form.

    python -m tests.export.random_modules [--first 0] [--count 1000] [--show NUMBER]

A module depends on its number alone. Many do not run, because shapes do not fit; those count for nothing.
"""

import copy
import io
import random
import sys
import warnings

import cresset

from .. import random_programs

# {a} and {b} are tensors of two dimensions that the module has by then.
CALLS = [
    "{a} + {b}",
    "{a} * {b}",
    "{a} - 2",
    "{a} / 3",
    "{a}.relu()",
    "torch.tanh({a})",
    "F.gelu({a})",
    "{a}.t()",
    "{a}.transpose(0, 1)",
    "{a}[1:]",
    "{a}[:, :2]",
    "{a}[..., None].squeeze(-1)",
    "{a}.sum(0, keepdim=True)",
    "{a}.mean(-1, keepdim=True)",
    "torch.cat([{a}, {a}], 0)",
    "torch.stack([{a}, {a}]).sum(0)",
    "{a}.flip(0)",
    "{a}.softmax(-1)",
    "F.layer_norm({a}, [{a}.shape[-1]])",
    "{a}.clamp(-1, 1)",
    "torch.where({a} > 0, {a}, -{a})",
    "{a}.max(1, keepdim=True)[0]",
    "{a}.reshape(-1)[:4].reshape(2, 2)",
    "{a} @ {a}.t()",
    "{a}.chunk(2, 0)[0]",
    "{a}.unsqueeze(0).expand(2, -1, -1).sum(0)",
    "{a}.roll(1, 0)",
    "{a}.cumsum(0)",
    "{a}.masked_fill({a} < 0, 0.5)",
    "{a}.clone()",
    "{a}.to(torch.float64).float()",
    "{a}.index_select(0, torch.tensor([0]))",
    "{a}.topk(1, 1)[0]",
    "{a}.sort(1)[0]",
    "{a}.pow(2)",
    "{a}.abs().sqrt()",
    "self.linear({a}[:1, :1].expand(2, 4))",
    "self.state + {a}.sum()",
    "{a}.diagonal().unsqueeze(0)",
    "{a}.repeat(1, 2)",
    "{a}.view({a}.size(0), -1)",
    "torch.zeros_like({a}) + {b}.mean()",
    "torch.full((2, 2), 1.5) * {a}.sum()",
    "torch.arange(3.).unsqueeze(0) + {a}.sum()",
    "{a}.new_ones(2, 2)",
    "F.pad({a}, (1, 0))",
    "{a}.contiguous().flatten(0).unsqueeze(0)",
    "torch.einsum('ij,kj->ik', {a}, {a})",
    "{a}.std(1, keepdim=True, unbiased=False)",
    "torch.baddbmm(torch.zeros(1, 1, 1), {a}.unsqueeze(0), {a}.t().unsqueeze(0))[0]",
    "F.scaled_dot_product_attention({a}[None], {a}[None], {a}[None])[0]",
    "{a}.split(1, 0)[-1]",
    "{a}.narrow(1, 0, 1)",
    "{a}.gather(1, torch.zeros_like({a}, dtype=torch.long))",
    "torch.tril({a})",
    "{a}.round().int().float()",
    "F.one_hot({a}.argmax(1), 8).float()",
    "torch.var_mean({a}, 0)[1].unsqueeze(0)",
    "{a}.unbind(0)[0].unsqueeze(0)",
    "{a}.scatter(1, torch.zeros_like({a}, dtype=torch.long), 2.0)",
]
WRITES = [
    "{a}.add_(1)",
    "{a}.mul_({b}.sum())",
    "{a}[0] = 2.0",
    "{a}[:, 0] += 1",
    "{a}[:1].zero_()",
    "{a}.t().mul_(2)",
    "{a}.copy_({a} * 2)",
    "{a}[{a} > 0] = -1.0",
    "{a}.relu_()",
    "{a}.clamp_(max=1.0)",
    "{a}.masked_fill_({a} > 1, 3.0)",
    "{a}.view(-1)[0] = 5.0",
    "{a} += 1",
    "{a} *= 0.5",
    "self.state.add_({a}.mean().detach())",
    "{a}.select(0, 0).fill_(0.25)",
    "{a}.index_fill_(0, torch.tensor([0]), 1.0)",
    "{a}[..., -1:].neg_()",
    "{a}.fill_diagonal_(2.0)",
    "{a}.unsqueeze(0).add_(1)",
]

SOURCE = """
import cresset as torch
from cresset import nn
import cresset.nn.functional as F


class Program(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("state", torch.ones(2, 2))

    def forward(self, x, y):
"""


def text_of(number):
    """The source of module `number`."""
    chance = random.Random(number)
    names, lines = ["x", "y"], []
    writable = ["x"] if chance.random() < 0.3 else []
    for step in range(chance.randrange(3, 12)):
        a, b = chance.choice(names), chance.choice(names)
        if writable and chance.random() < 0.35:
            lines.append(chance.choice(WRITES).format(a=chance.choice(writable), b=b))
            continue
        name = f"v{step}"
        lines.append(f"{name} = {chance.choice(CALLS).format(a=a, b=b)}")
        names.append(name)
        if chance.random() < 0.7:
            lines.append(f"{name} = {name}.clone()")
        elif chance.random() < 0.5:
            continue
        writable.append(name)
    lines.append(f"return {', '.join(chance.sample(names, 2))}")
    return SOURCE + "".join(f"        {line}\n" for line in lines)


def arguments():
    return (
        cresset.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -3.0]]),
        cresset.tensor([[1.0, 2.0, -0.5], [0.0, -1.0, 0.5]]),
    )


def through_file(save, load, made):
    file = io.BytesIO()
    save(made, file)
    file.seek(0)
    return load(file)


def exported(module):
    return cresset.export.export(module, arguments())


FORMS = {
    "traced": lambda m: cresset.jit.trace(m, arguments()),
    "traced, from a file": lambda m: through_file(
        cresset.jit.save, cresset.jit.load, cresset.jit.trace(m, arguments())
    ),
    "exported": lambda m: exported(m).module(),
    "exported, from a file": lambda m: through_file(cresset.export.save, cresset.export.load, exported(m)).module(),
    "without writes": lambda m: exported(m).run_decompositions().module(),
    "compiled": cresset.compile,
}


def outcome(module):
    """What a call gives and what it leaves: results, arguments, the buffer."""
    given = arguments()
    results = module(*given)
    state = dict(module.named_buffers()).get("state")
    return [t.detach() for t in (*results, *given, *([] if state is None else [state]))]


def agree(one, other):
    pairs = zip(one, other, strict=False)
    return all(
        a.shape == b.shape and a.dtype == b.dtype and cresset.allclose(a, b, 1e-5, 1e-5, equal_nan=True)
        for a, b in pairs
    )


def load(number, folder):
    """The module of a number."""
    return random_programs.load(f"random_module{number}", text_of(number), folder).Program().eval()


def differences(number, folder):
    """The forms that do otherwise than the module, [(form, what is wrong)]; None if the module does not run."""
    module = load(number, folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = outcome(copy.deepcopy(module))
    except (RuntimeError, IndexError, ValueError):
        return None
    found = []
    for name, make in FORMS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                form = make(copy.deepcopy(module))
                got = outcome(form)
        except Exception as error:  # whatever it is, the module itself does not raise it
            found.append((name, f"{type(error).__name__}: {error}"))
            continue
        if not agree(expected, got):
            found.append((name, f"{expected} became {got}"))
    return found


def findings(number, folder):
    found = differences(number, folder)
    return None if found is None else [f"{form}: {what}" for form, what in found]


if __name__ == "__main__":
    sys.exit(random_programs.command(__doc__, text_of, findings))
