"""What holds of a difference beside its words: rules in differences.py ask for it, so that they mute nothing else.

After an error that both raised, cresset should have left everything as it was. Where a step reads what it writes,
cresset should give what PyTorch gives when the operands are copies. Both are tried, on the program itself.
"""

import re

from lockstep import Lockstep, Side, asked, memory, span

NOTHING_CHANGED = "; cresset changed nothing"
AS_APART = "; as PyTorch with copies of what is read"


def circumstances(libraries, steps, why, operands):
    """Words to add to a difference of the last step."""
    if not why.startswith("raised") and "; both raised" in why:
        return NOTHING_CHANGED if changes_nothing(libraries[-1], steps) else "; cresset changed something"
    if "operands share memory" in operands:
        text = with_copies(steps[-1])
        if text and agrees(libraries, steps, text):
            return AS_APART
    return ""


def state(side):
    """All that can be seen of a side's variables, for comparison with itself."""
    seen = {}
    for name, tensor in side.tensors().items():
        looks = side.looks(tensor)
        fits = (tensor.storage_offset() + span(looks)) * tensor.element_size() <= tensor.untyped_storage().nbytes()
        seen[name] = looks, memory(tensor, looks).tobytes() if fits else None
    return seen


def changes_nothing(library, steps):
    """Whether the last step, which fails, leaves the variables of a library as they were."""
    side = Side(library)
    for text in steps[:-1]:
        side.run(compile(text, "<step>", "exec"))
    before = state(side)
    side.run(compile(steps[-1], "<step>", "exec"))
    return side.error is not None and asked(lambda: state(side)) == before


def with_copies(step):
    """The step with a copy of each operand that it only reads; None where it writes to none that it can be told of."""
    mode, body = re.fullmatch(r"(with t\.no_grad\(\): )?(.*)", step).groups(default="")
    if found := re.fullmatch(r"(.*)(\bout=.*)", body):
        return mode + copied(found[1]) + found[2]
    if found := re.fullmatch(r"(.*\.\w+_\()(.*)(\))", body):
        return mode + found[1] + copied(found[2]) + found[3]
    if found := re.fullmatch(r"(v\d+.*? (?:[-+*/%&|^@]|//|\*\*)?= )(.*)", body):
        return mode + found[1] + copied(found[2])
    return None


def copied(text):
    return re.sub(r"\b(v\d+)\b", r"\1.clone()", text)


def agrees(libraries, steps, text):
    """Whether PyTorch, given the last step as `text`, ends where cresset ends with the step itself."""
    lockstep = Lockstep(libraries)
    for step in steps[:-1]:
        if lockstep.step(step):
            return False
    lead, other = lockstep.sides
    lead.run(compile(text, "<step>", "exec"))
    other.run(compile(steps[-1], "<step>", "exec"))
    lockstep.steps.append(text)
    return lockstep.difference() is None
