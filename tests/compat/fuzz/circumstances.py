"""What holds of a difference beside its words: rules in differences.py ask for it, so that they mute nothing else.

After an error that both raised, cresset should have left everything as it was. Where a step reads what it writes,
cresset should give what PyTorch gives when the operands are copies. A history that only one library records should be
that of a constant. Strides that differ should be those of dense tensors. All this is tried, on the program itself; who
lent or wrote the memory earlier, and which functions a gradient went through, is read off its lines.
"""

import ast
import re

import numpy as np
from detours import (
    AGAIN,
    ANOTHER_WAY,
    WRITTEN,
    Uncounted,
    agrees,
    agrees_when_kept,
    another_way,
    saving_copies,
    with_each_alone,
    with_powers_without_zero,
    with_wide_comparisons,
)
from differences import known
from lockstep import STORAGE_WRITTEN, Lockstep
from rounding import DRAWS, EPSILON, GRADIENT, UNITS
from side import Side, asked, fits, memory

OVERLAPPING = "unsupported operation: "
IN_PLACE = "modified by an inplace operation"
NOTHING_CHANGED = "; cresset changed nothing"
AS_APART = "; as PyTorch with copies of what is read"
AS_SAVED = "; as PyTorch with copies of what it saves"
AS_KEPT = "; as PyTorch where cresset saves copies"
AS_COPIED = "; as PyTorch with a new result, copied to out="
AS_ALONE = "; as PyTorch with each tensor alone"
OF_THE_LARGEST = "; by some units of the largest"
VANISHING = "; products on the way overflow and vanish"
CONSTANT = "; its history moves nothing"
BEHIND = "; not without what was written through data"
TOGETHER = "; not without changes in place of what was given the memory of another tensor"
BASED = "; a view whose base requires a gradient"
HIDDEN = "; a view in PyTorch alone, of something that nobody has"
AS_BOUNDED = "; as PyTorch with a bound of zero"
AS_WIDE = "; as PyTorch with comparisons of wider integers"
AS_FACTORS = "; as PyTorch with wider factors of addcmul"
AS_BOUNDED_LOGARITHMS = "; as PyTorch with the slope of bounded logarithms"
AS_OF_LOGARITHMS = "; as PyTorch with a cross entropy made of logarithms"
AS_PLAIN_POWERS = "; as PyTorch with powers of zero that have no history"
AS_DENSE = "; as PyTorch with statistics that have no gaps"
AS_PUSHED = "; as PyTorch with jvp for linearize"
AS_STOPPED = "; as PyTorch where a gradient stops at inputs="
TWICE = "; of a parameter that it has twice"
UNTOLD = "; PyTorch does not tell whether it is a leaf"
AS_UNDRAWN = "; as PyTorch where refused calls draw nothing"
OF_NUMPY = "; of a NumPy scalar of complex64"
AS_PARTS = "; as PyTorch with each part by itself"
OF_SOMETHING = "; PyTorch refuses it of something"
WITHOUT = "; refused without what PyTorch says, too"
SIGNS_OF_NANS = "; bits of nans alone"
AS_HELD = "; as PyTorch where arrays hold their memory"
AS_SINGLE = "; as PyTorch in single precision"
AS_RESOLVED = "; as PyTorch with conjugates that are computed"
REMADE = "; a view has its history anew in PyTorch alone"
KEPT = re.compile(r"that (Recurrence|KlDivElementwise|PoissonNllElementwise)Backward0 needs")
LENT = re.compile(r"numpy\(|\bnp[.]|from_numpy|frombuffer|through_file|through_pickle|dlpack|share_memory")
OUT_OF_ITSELF = re.compile(r"\((?:.*\W)?(v\d+)\b.*out=\1\b|\b(v\d+)\b.*out=v\d+\[")
DATA_WRITTEN = re.compile(r"[.]data[.]\w+_\(|[.]data(\[.*\])? \S*= ")
GIVEN = re.compile(r"(v\d+)(?: = t[.].*\))?(?:[.]set_\(|[.]data = )|\bm\d+[.](?:to|float|double|half|bfloat16)\(")
HOOKED = re.compile(r"[.]register_\w*hook\(")
OVER_NOTHING = re.compile(r"[.](std|var)(_mean)?\((v\d+, )?\(\)")
LINEARIZED = re.compile(r"t[.]func[.]linearize\((lambda x: [^,]+), (v\d+)\)\[1\]\((t[.]ones_like\(v\d+\))\)")
COMPARED = re.compile(r" ([<>]=?|[!=]=) |[.]((eq|ne|lt|le|gt|ge|greater|less)(_equal)?|clamp)_?\(")
VARIABLE = r"\bv\d+\b"
SIZES = re.compile(r"\b(?:values|zeros|ones|full|rand|randn)\(\([\d, ]*\)|\beye\(0,")
REASONS = [
    re.compile(words)
    for words in ("not implemented for|dtype|scalar type|Input type|Low precision", "out of (range|bounds)")
]
# Functions whose gradients cancel, or that PyTorch computes to fewer digits.
NOTED = re.compile(
    r"\b(digamma|hardsigmoid|gelu|GELU|\w+_norm|\w+Norm\w*|GRUCell|LSTMCell|abs|\w*softmax|cross_entropy)\("
)


def circumstances(libraries, steps, why, operands):
    """Words to add to a difference of the last step."""
    if why.startswith("raised") and is_refused_without(libraries, steps, why, operands):
        return WITHOUT
    if not why.startswith("raised") and "; both raised" in why:
        if changes_nothing(libraries[-1], steps):
            return NOTHING_CHANGED
        anew = GRADIENT.search(steps[-1]) and remade(libraries, steps[:-1])
        return "; cresset changed something" + (REMADE + uncounted(libraries, steps) if anew else "")
    bounded = re.sub(r"([(,] ?)-\d+(?=[,)])", r"\g<1>0", steps[-1])
    wraps = "clamp" in steps[-1] and bounded != steps[-1] and " uint8 " in operands
    if wraps and (agrees_with(libraries, steps, bounded) or agrees_with(libraries, steps, with_copies(bounded))):
        return AS_BOUNDED
    compared = COMPARED.search(steps[-1]) and re.search(r" u?int(8|16|32) ", operands) and not why.startswith("only")
    if compared and agrees(libraries, steps, with_wide_comparisons(steps), answered=False):
        return AS_WIDE
    if "operands share memory" in operands:
        text = with_copies(steps[-1])
        if text and agrees_with(libraries, steps, text):
            return AS_APART
        if text and why.startswith("only torch") and has_known_elements(libraries, steps, text, operands):
            return AS_APART
    if found := re.fullmatch(r"(with t\.no_grad\(\): )?(t\.\w+\(.*), out=(v\d+)\)", steps[-1]):
        text = f"{found[1] or ''}{found[3]}.copy_({found[2]}))"
        if re.match(r"v\d+: \S+ instead of \S+ at ", why) and agrees_with(libraries, steps, text):
            return AS_COPIED
    if found := re.fullmatch(r"(\S+): requires_grad (True|False) instead of \w+; \1: is_leaf \w+ instead of \w+", why):
        if "_foreach_" in steps[-1] and agrees(libraries, steps, with_each_alone(steps)):
            return AS_ALONE
        anew = REMADE + uncounted(libraries, steps) if remade(libraries, steps) else ""
        is_told = anew.endswith(ANOTHER_WAY)
        if not is_told and is_constant(libraries[-1 if found[2] == "True" else 0], steps, found[1]):
            return CONSTANT
        return anew
    if found := re.fullmatch(
        r"(\S+): strides \(([\d, ]*)\) instead of \(([\d, ]*)\)(?:; \1: offset \d+ instead of 0)?", why
    ):
        said = density(libraries[0], steps, found[1], numbers(found[2]), numbers(found[3]))
        parts = GRADIENT.search(steps[-1]) and said.endswith("repeated instead of dense")
        return said + "; through pad" if parts and any("pad(" in step for step in steps) else said
    if re.fullmatch(r"v\d+: dtype complex\d+ instead of b?float\d+", why):
        given = after(libraries[0], steps[:-1]).names
        found = [given.get(name) for name in re.findall(r"\bn\d+\b", steps[-1])]
        return OF_NUMPY if any(isinstance(x, np.complex64) for x in found) else ""
    if any("share_memory_(" in step for step in steps):
        theirs = [re.sub(r"\b(v\d+)[.]share_memory_\(\)", r"moved(globals(), \1)", step) for step in steps]
        if agrees(libraries, steps, theirs, answered=False):
            return AS_HELD
    if re.fullmatch(r"(v\d+): strides \([\d, ]*\) instead of \([\d, ]*\); \1: is_conj False instead of True", why):
        theirs = [*steps[:-1], f"{steps[-1]}.resolve_conj().contiguous()"]
        return AS_RESOLVED if agrees(libraries, [*steps[:-1], f"{steps[-1]}.contiguous()"], theirs) else ""
    if why.startswith("raised ValueError instead of RuntimeError: h") and AGAIN in why:
        return ANOTHER_WAY if agrees_when_kept(libraries, steps, answered=False) else ""
    drawn = DRAWS.search(steps[-1]) and re.match(r"v\d+: \S+ instead of", why)
    if drawn or re.match(r"said \(\('tensor', |m\d+[.]\S+: \S+ instead of \S+ at ", why):
        fewer = without_what_both_refuse(libraries, steps)
        if fewer != steps and agrees(libraries, fewer, fewer):
            return AS_UNDRAWN
    if found := re.fullmatch(r"(\S+): (is_leaf|requires_grad) \w+ instead of \w+", why):
        return views(libraries, steps, found[1])
    if "detach views in-place" in why:
        return views(libraries, steps, steps[-1].removesuffix(".detach_()"))
    found = re.fullmatch(r"n\d+: (\('array', 'u?int(?:16|32|64)', .*\)) instead of (\('array', .*\))", why)
    if found and are_nans(*map(ast.literal_eval, found.groups())):
        return SIGNS_OF_NANS
    if found := re.fullmatch(r"said \((\d+), False\) instead of \(0, False\)", why):
        layer = maker(steps[:-1], re.findall(VARIABLE, steps[-1])[0])
        return f"; made by {maker(steps[:-1], layer)}"
    if found := re.fullmatch(r"say\((v\d+)\._base is (v\d+), .*\)", steps[-1]):
        return views(libraries, steps, found[2])
    if re.fullmatch(r"said \(True, (True|False)\) instead of \(True, (True|False)\)", why):
        return f"; made by {maker(steps[:-1], re.findall(VARIABLE, steps[-1])[0])}"
    if found := re.fullmatch(r"said \(\(([\d, ]+)\),\) instead of \(\(([\d, ]+)\),\)", why):
        pairs = [{a, b} for a, b in zip(numbers(found[1]), numbers(found[2])) if a != b]
        return "; signs of zeros" if all(pair == {0, 128} for pair in pairs) else ""
    if (
        GRADIENT.search(steps[-1])
        and re.match(r"\S+: \S+ instead of \S+ at |only cresset raised RuntimeError: Function \w+ returned an", why)
        and behind_backward(libraries, steps)
    ):
        return BEHIND
    if re.fullmatch(r"v\d+: version 0 instead of \d+", why) and any("backward(v" in step for step in steps):
        theirs = [re.sub(r"(backward\()(v\d+)", r"\1\2.clone()", step) for step in steps]
        return AS_APART if agrees(libraries, steps, theirs, answered=False) else ""
    found = re.match(r"v\d+: \S+ instead of \S+ at ", why) and re.fullmatch(r"v\d+ = (v\d+)[.]prod\(.*\)", steps[-1])
    if found:
        return VANISHING if overflows_and_vanishes(after(libraries[0], steps[:-1]).tensors()[found[1]]) else ""
    found = re.match(r"(v\d+): (\S+) instead of (\S+) at .* float(32|64)$", why)
    if found and re.search(r"linalg[.]svdvals\(", steps[-1]):
        most = float(after(libraries[0], steps).tensors()[found[1]].abs().max())
        units = UNITS * EPSILON[f"float{found[4]}"] * most
        return OF_THE_LARGEST if abs(float(found[2]) - float(found[3])) <= units else ""
    if "nan_to_num_(" in steps[-1] and " bool " in operands:
        text = re.sub(r"(\S+)[.]nan_to_num_\(\)", r"\1.copy_(\1.clone())", steps[-1])
        return AS_APART if agrees_with(libraries, steps, text) else ""
    if "median(" in steps[-1] and re.match(r"v\d+: \S+ instead of \S+ at ", why):
        text = re.sub(
            r"\b(v\d+)(?=[.]median\()|(?<=median\()(v\d+)",
            lambda x: f"{x[0]}.clone(memory_format=t.contiguous_format)",
            steps[-1],
        )
        return AS_APART if agrees_with(libraries, steps, text) else ""
    if re.match(r"v\d+: \S+ instead of \S+ at .* complex\d+$", why) and "mean(" in steps[-1]:
        text = re.sub(r"(v\d+)[.]mean\((.*)\)$", r"t.complex(\1.real.mean(\2), \1.imag.mean(\2))", steps[-1])
        text = re.sub(
            r"t[.]mean\((v\d+), (.*), out=(.*)\)$", r"\3.copy_(t.complex(\1.real.mean(\2), \1.imag.mean(\2)))", text
        )
        return AS_PARTS if agrees_with(libraries, steps, text) else ""
    found = re.fullmatch(r"v\d+: \S+ instead of nan at .* (b?float16)", why)
    if found and (loss := re.fullmatch(r"(v\d+) = (F[.]\w+_loss\(.*)", steps[-1])):
        text = re.sub(VARIABLE, r"\g<0>.float()", loss[2])
        return AS_SINGLE if agrees_with(libraries, steps, f"{loss[1]} = {text}.to(t.{found[1]})") else ""
    if GRADIENT.search(steps[-1]) and re.match(r"\S+: \S+ instead of (nan|-?inf) at .* b?float\d+$", why):
        theirs = [step.replace("F.binary_cross_entropy(", "binary_cross_entropy(") for step in steps]
        if theirs != steps and agrees(libraries, steps, theirs):
            return AS_BOUNDED_LOGARITHMS
    if GRADIENT.search(steps[-1]) and re.match(r"\S+: \S+ instead of nan at ", why):
        theirs = with_powers_without_zero(steps)
        if theirs != steps and agrees(libraries, steps, theirs, answered=False):
            return AS_PLAIN_POWERS
    if GRADIENT.search(steps[-1]) and re.match(r"\S+: \S+ instead of \S+ at ", why):
        for call, other, as_other in (
            ("t.addcmul(", "addcmul(", AS_FACTORS),
            ("F.batch_norm(", "batch_norm(", AS_DENSE),
            ("F.binary_cross_entropy(", "cross_entropy_of_logarithms(", AS_OF_LOGARITHMS),
        ):
            theirs = [step.replace(call, other) for step in steps]
            if theirs != steps and agrees(libraries, steps, theirs, answered=False):
                return as_other
    found = re.match(r"v\d+: (-?\d+) instead of (-?\d+) at .* u?int\d+$", why)
    if found and "linspace(" in steps[-1]:
        return "; by one" if abs(int(found[1]) - int(found[2])) == 1 else ""
    stopped = [re.sub(r"^(.*)[.]backward\(inputs=(\[[^\]]*\])\)$", r"accumulated(\1, \2)", step) for step in steps]
    if stopped != steps and agrees(libraries, steps, stopped, answered=False):
        return AS_STOPPED
    if found := re.search(r"descend\((o\d+)\)|(o\d+)[.]step\(", steps[-1]):
        listed = optimized(libraries[0], steps[:-1], found[1] or found[2])
        if len(listed) > len({id(parameter) for parameter in listed}):
            return TWICE
    if why.startswith("only cresset") and (found := re.match(r"(v\d+)[.]requires_grad", steps[-1])):
        tensor = after(libraries[0], steps[:-1]).tensors()[found[1]]
        if asked(lambda: tensor.is_leaf) == "RuntimeError":
            return UNTOLD
    pushed = [LINEARIZED.sub(r"t.func.jvp(\1, (\2,), (\3,))[1]", step) for step in steps]
    if pushed != steps and agrees_or_is_known(libraries, steps, pushed, operands):
        return AS_PUSHED
    apart = rf"\S+: \S+ instead of \S+ at |only cresset .*{IN_PLACE}|only torch (said|raised RuntimeError: {AGAIN})"
    if GRADIENT.search(steps[-1]) and re.match(apart, why):
        theirs = with_each_alone(steps)
        if theirs != steps and agrees(libraries, steps, theirs, answered=False):
            return AS_ALONE
    saved_is_gone = IN_PLACE in why or "detached in-place" in why
    if re.match(r"only torch|raised ValueError instead of RuntimeError: h\d+ [|]", why) and saved_is_gone:
        return AS_SAVED if agrees_with_saved_copies(libraries, steps, operands) else ""
    if IN_PLACE in why and counted_together(libraries, steps):
        return TOGETHER
    made_of_others = "MulBackward1 needs" in why and any("ndtr(" in step for step in steps)
    if why.startswith("only cresset") and (KEPT.search(why) or made_of_others or "detached in-place" in why):
        with saving_copies(libraries[1]):
            return AS_KEPT if agrees(libraries, steps, steps) else ""
    if why.startswith("only torch raised") and (said := another_way(libraries, steps, why)):
        return said
    if why.startswith("only cresset raised") and is_refused_of_something(libraries[0], steps, why):
        return OF_SOMETHING
    said = past(libraries, steps, why)
    if found := re.fullmatch(r"tensors \[(.+)\] instead of \[\]", why):
        names = re.findall(VARIABLE, found[1])
        said += BASED if all(is_based(libraries[0], steps, name) for name in names) else ""
    if GRADIENT.search(steps[-1]):
        said += "; sizes of a recorded tensor were changed" if resizes(libraries[0], steps) else ""
        if remade(libraries, steps if "together(" in steps[-1] else steps[:-1]):
            said += REMADE + uncounted(libraries, steps)
    return said


def is_refused_without(libraries, steps, why, operands):
    """Whether what PyTorch says is not all that is wrong: the step without it is refused, too, by both libraries alike
    or in a known way.
    """
    text = without_what_is_said(steps[-1], why)
    if text in (None, steps[-1]):
        return False
    lockstep, fewer = Lockstep(libraries), [*steps[:-1], text]
    other = [lockstep.step(step) for step in fewer][-1]
    if not any(side.error for side in lockstep.sides) or any(
        side.error and OVERLAPPING in side.error[1] for side in lockstep.sides
    ):
        return False
    return other is None or bool(known(text, other + circumstances(libraries, fewer, other, operands), operands))


def is_refused_of_something(library, steps, why):
    """Whether the last step, which a library computes with nothing or with single numbers, is refused by it for the
    same kind of reason where there are some more.
    """
    side = after(library, steps[:-1])
    for name in set(re.findall(VARIABLE, steps[-1])) & side.tensors().keys():
        x = side.tensors()[name]
        sizes = [2 if n == 0 else n for n in x.shape]
        side.names[name] = library.ones([2] * max(x.dim(), 1) if x.numel() == 1 else sizes, dtype=x.dtype)
    text = re.sub(r"t\.arange\(0\)\.to\(t\.(\w+)\)\.reshape\((\([^)]*\))\)", r"values(\2, '\1')", steps[-1])
    side.run(SIZES.sub(lambda made: re.sub(r"\b0\b", "2", made[0]), text))  # also in what it makes for itself
    return bool(side.error) and any(word.search(why) and word.search(side.error[1]) for word in REASONS)


def without_what_is_said(step, why):
    """The step with a dimension in range, with copies of tensors of inference mode or of what shares memory, or without
    the history of a view, where that is refused.
    """
    if OVERLAPPING in why:
        return "\n".join([*(f"{name} = {name}.clone()" for name in set(re.findall(VARIABLE, step))), step])
    if "A view was created in no_grad mode" in why:
        return re.sub(VARIABLE, r"\g<0>.detach()", step.partition(" = ")[2] or step)
    if found := re.search(r"Dimension out of range \(expected .*, but got (-?\d+)\)", why):
        return re.sub(rf"(?<=[(, =]){found[1]}(?=[,)])", "0", step)
    return with_copies(step) if "Inference tensors cannot be saved for backward" in why else None


def behind_backward(libraries, steps):
    """Whether a difference is gone when nothing is written through `.data`, which is no change that backward minds."""
    hidden = unminded(libraries[0], steps) if any(".data" in step for step in steps) else ()
    fewer = [step for step in steps if not DATA_WRITTEN.search(step) and step not in hidden]
    lockstep = Lockstep(libraries)
    return len(fewer) < len(steps) and not any(lockstep.step(step) for step in fewer)


def unminded(library, steps):
    """The lines that write to a tensor while the version of another one, with the same memory, stays."""
    side, found = Side(library), []
    for text in steps:
        before = [(x, asked(lambda x=x: x._version)) for x in side.tensors().values()]
        side.run(text)
        now = {
            (asked(lambda x=x: x.untyped_storage().data_ptr()), asked(lambda x=x: x._version) == version)
            for x, version in before
            if x.numel()
        }
        found += [text] if any(not same and (start, True) in now for start, same in now) else []
    return found


def counted_together(libraries, steps):
    """Whether a difference is gone without the writes to variables that `set_` or `.data =` gave other memory, and
    those that PyTorch counts for one tensor, and not for another with the same memory; or without giving it.
    """
    given, fewer, hidden = set(), [], unminded(libraries[0], steps)
    for step in steps:
        changed = WRITTEN.match(step)
        if GIVEN.search(step) or not ((changed and changed[1] in given) or step in hidden):
            fewer.append(step)
        given.update(GIVEN.findall(step))
    kept = (fewer, [step for step in steps if not GIVEN.search(step)])
    return any(len(lines) < len(steps) and all_alike(libraries, lines) for lines in kept)


def all_alike(libraries, steps):
    """Whether no step makes a difference."""
    lockstep = Lockstep(libraries)
    return not any(lockstep.step(step) for step in steps)


def resizes(library, steps):
    """Whether a tensor that requires a gradient gets other sizes on the way (out= under no_grad, `.data =`)."""
    side, seen = Side(library), {}
    for text in steps[:-1]:
        side.run(text)
        for tensor in side.tensors().values():
            before = seen.setdefault(id(tensor), (tensor, tuple(tensor.shape)))[1]
            if before != tuple(tensor.shape) and asked(lambda x=tensor: x.requires_grad) is True:
                return True
    return False


def past(libraries, steps, why):
    """What earlier lines say about the memory, or about the way of a gradient."""
    said = ""
    whose = re.search(r"not resizable|^v\d+ shares the memory|^only cresset .* refer to a single memory", why)
    if (whose or "is_set_to(" in steps[-1]) and any(LENT.search(step) for step in steps[:-1]):
        said += "; memory was lent"
    if re.match(r"v\d+: \S+ instead of \S+ at|v\d+ shares the memory", why) and any(
        "from_dlpack" in step for step in steps[:-1]
    ):
        said += "; memory was lent by DLPack"
    if re.match(r"v\d+: \S+ instead of \S+ at", why) and re.search(r"[.]set_\(|grown\(|as_strided", steps[-1]):
        names = re.findall(r"\bv\d+\b", steps[-1].partition(" = ")[2] or steps[-1])
        said += "; after an out= that was read, too" if any(OUT_OF_ITSELF.search(step) for step in steps[:-1]) else ""
        said += "; of a copy with gaps" if any(maker(steps[:-1], x).endswith("_scatter") for x in names) else ""
    if IN_PLACE in why and any(STORAGE_WRITTEN.search(step) for step in steps[:-1]):
        said += "; memory was written through its storage"
    if GRADIENT.search(steps[-1]) and (
        re.match(r"\S+: \S+ instead of \S+ at ", why) or why.endswith("; in the last places alone")
    ):
        said += through(steps)
        said += "; through a variance over no dimensions" if any(map(OVER_NOTHING.search, steps)) else ""
    if found := re.match(r"(?:only \w+ )?said \('(h\d+)'", why):
        said += node_of(libraries, steps, found[1])
    if re.match(r"(?:only \w+ )?said ", why):
        said += root_of(steps, re.findall(r"\('(h\d+)', \((?:True|False)", why))
    if "is a view and is being modified inplace" in why:
        changed = re.findall(VARIABLE, steps[-1].rpartition(" = ")[2] if ".apply(" in steps[-1] else steps[-1])
        said += f"; made by {maker(steps[:-1], changed[0])}" if changed else ""
    if "One of the differentiated Tensors does not require grad" in why:
        names = set(re.findall(VARIABLE, steps[-1]))
        said += BASED if any(is_based(libraries[0], steps[:-1], name) for name in names) else ""
    if "a second time" in why:
        names = sorted({name for step in steps for name in re.findall(r"\b(diag\w*|\w+_scatter|interpolate)\(", step)})
        said += f"; through {' '.join(names)}" if names else ""
    if "MulBackward0 needs" in why and any("kron(" in step for step in steps):
        said += "; through kron"
    if "MulBackward0 needs" in why and any(re.search(r"= (-?[\d.]+|True|False) / v\d+$", step) for step in steps):
        said += "; through a number divided by a tensor"
    return said


def through(steps):
    """Which of the functions whose rounding is seen the program calls."""
    names = sorted({name for step in steps for name in NOTED.findall(step)})
    return f"; through {' '.join(names)}" if names else ""


def node_of(libraries, steps, hook):
    """Which call made the result whose node has a hook, and whether its last step has another name in each library."""
    hooked = re.compile(rf"\b(v\d+)[.]grad_fn[.]register_(pre)?hook\(node_hook\('{hook}'")
    for at, step in enumerate(steps):
        if found := hooked.search(step):
            nodes = [asked(after(t, steps[:at]).tensors()[found[1]].grad_fn.name) for t in libraries]
            return f"; of a node of {maker(steps[:at], found[1])}" + ("; another step" if len(set(nodes)) > 1 else "")
    return ""


def root_of(steps, hooks):
    """Whether one of these hooks, of several gradients, waits for that of what backward begins at."""
    root = re.search(r"\b(v\d+)[.]backward\(|[.]grad\((v\d+),", steps[-1])
    for step in steps if root else ():
        found = re.search(r"register_multi_grad_hook\(\(([^)]*)\), .*say\('(h\d+)'", step)
        if found and found[2] in hooks and (root[1] or root[2]) in re.findall(VARIABLE, found[1]):
            return "; of several gradients, with that of the root"
    return ""


def maker(steps, name):
    """The function whose result a name was given last."""
    made = [x for x in steps if re.match(rf"(with [^:]*: )?(v\d+, )*{name}(, v\d+)* = ", x)] or [""]
    called = re.findall(r"([A-Za-z_]\w*)\(", made[-1].partition(" = ")[2])
    return called[0] if called else "an operator"


def remade(libraries, steps):
    """Whether a write made the history of a view anew in PyTorch alone: there any write does, also one that is not
    recorded, and the new history leads to the base, past views that are leaves; hooks of the old one are gone.
    """
    sides, seen = [Side(library) for library in libraries], {}
    for text in steps:
        for side in sides:
            side.run(text)
        theirs, ours = (side.tensors() for side in sides)
        for name in theirs.keys() & ours.keys():
            if not asked(theirs[name]._is_view):
                continue
            now = [(x, asked(lambda x=x: x.grad_fn)) for x in (theirs[name], ours[name])]
            before = seen.get(name, now)
            seen[name] = now
            same = [a[0] is b[0] for a, b in zip(before, now)]
            if all(same) and before[0][1] is not now[0][1] and before[1][1] is now[1][1]:
                return True
    return False


def uncounted(libraries, steps):
    """The words where cresset ends as PyTorch does when writes that are not recorded, or those of them that make a
    history anew, do not count there.
    """
    sides = (Uncounted(libraries[0], of) for of in (lambda x: True, lambda x: x._is_view() and x.requires_grad))
    return ANOTHER_WAY if any(agrees(libraries, steps, steps, answered=False, side=side) for side in sides) else ""


def after(library, steps):
    """A side that has run these lines."""
    side = Side(library)
    for text in steps:
        side.run(text)
    return side


def without_what_both_refuse(libraries, steps):
    """The lines without those, but for the last, that both libraries refuse and after which only PyTorch's generator
    has gone on.
    """
    sides, kept = [Side(library) for library in libraries], []
    for step in steps[:-1]:
        went_on = []
        for side in reversed(sides):  # each has a generator of its own
            before = side.t.get_rng_state()
            side.run(step)
            went_on.append(not side.t.equal(before, side.t.get_rng_state()))
        if not (all(side.error for side in sides) and went_on == [False, True]):
            kept.append(step)
    return [*kept, steps[-1]]


def is_constant(library, steps, name):
    """Whether the variable, which has a history, does not change when any leaf does."""
    side = after(library, [step for step in steps if not HOOKED.search(step)])  # a hook may refuse
    tensor = side.tensors().get(name)
    leaves = [x for x in side.tensors().values() if asked(lambda x=x: x.requires_grad and x.is_leaf) is True]
    if tensor is None or not tensor.requires_grad or not leaves:
        return False
    parts = library.view_as_real if tensor.is_complex() else lambda x: x
    moved = asked(lambda: library.autograd.grad(parts(tensor).sum(), leaves, allow_unused=True))
    return not isinstance(moved, str) and all(g is None or not g.any() for g in moved)


def optimized(library, steps, name):
    """The parameters of an optimizer, each as often as it was given."""
    return [p for group in after(library, steps).names[name].param_groups for p in group["params"]]


def numbers(text):
    return tuple(int(n) for n in text.split(",") if n.strip())


def is_dense(shape, strides):
    step = 1
    for stride, size in sorted((s, n) for n, s in zip(shape, strides) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def are_nans(ours, theirs):
    """Whether two plain arrays of whole numbers are the same but for places where both are the bits of a nan."""
    bits = [np.array(plain[-1], plain[1]) for plain in (ours, theirs)]
    if ours[:-1] != theirs[:-1]:
        return False
    nans = [np.isnan(x.view(f"float{8 * x.itemsize}")) for x in bits]
    return bool(((bits[0] == bits[1]) | (nans[0] & nans[1])).all())


def density(library, steps, name, ours, theirs):
    """Which of two forms of a tensor fills its memory, each element once."""
    tensor = after(library, steps).tensors().get(name)
    if tensor is None:
        return ""
    words = {True: "dense", False: "with gaps or repeated"}
    shape = tuple(tensor.shape)
    return f"; {words[is_dense(shape, ours)]} instead of {words[is_dense(shape, theirs)]}"


def views(libraries, steps, name):
    """Whether the variables of the last line, or the one that differs, are views in one library alone or hang on a
    base that requires a gradient, and which call made them.
    """
    theirs, ours = (after(library, steps[:-1]).tensors() for library in libraries)
    based = BASED if is_based(libraries[0], steps, name) else ""
    for asked_of in dict.fromkeys([*re.findall(r"\bv\d+\b", steps[-1]), name]):
        if asked_of in theirs and asked_of in ours and theirs[asked_of]._is_view() != ours[asked_of]._is_view():
            if not theirs[asked_of]._is_view():
                return f"; a view in cresset alone, made by {maker(steps[:-1], asked_of)}"
            hidden = not had(libraries[0], steps[:-1], asked_of)
            return HIDDEN if hidden else f"; a view in PyTorch alone, made by {maker(steps[:-1], asked_of)}"
    return based


def is_based(library, steps, name):
    """Whether a variable is a view of something that requires a gradient."""
    x = after(library, steps).tensors().get(name)
    return x is not None and asked(lambda: x._is_view() and x._base.requires_grad) is True


def had(library, steps, name):
    """Whether what a variable is a view of has, or had, a name of its own."""
    side, seen = Side(library), []
    for text in steps:
        side.run(text)
        seen += side.tensors().values()
    base = side.tensors()[name]._base
    return any(tensor is base for tensor in seen)


def overflows_and_vanishes(tensor):
    """Whether the large numbers of a tensor have an infinite product, and the small ones one that is zero."""
    if not tensor.is_floating_point():
        return False
    sizes = np.frexp(np.abs(tensor.detach().double().numpy()))[1].astype(float).reshape(-1)
    most, least = ({"float16": (15, -25), "float64": (1023, -1075)}).get(str(tensor.dtype)[6:], (127, -150))
    return bool(sizes[sizes > 0].sum() > most and sizes[sizes < 0].sum() < least)


def state(side):
    """All that can be seen of a side's variables, for comparison with itself."""
    seen = {}
    for name, tensor in side.tensors().items():
        looks = side.looks(tensor)
        seen[name] = looks, memory(tensor, looks).tobytes() if fits(tensor, looks) else None
    return seen


def changes_nothing(library, steps):
    """Whether the last step, which fails, leaves the variables of a library as they were."""
    side = after(library, steps[:-1])
    before = state(side)
    side.run(steps[-1])
    return side.error is not None and asked(lambda: state(side)) == before


def with_copies(step):
    """The step with a copy of each operand that it only reads; None where it writes to none that it can be told of."""
    mode, body = re.fullmatch(r"(with t\.no_grad\(\): )?(.*)", step).groups(default="")
    if found := re.fullmatch(r"(.*)(\bout=.*)", body):
        return mode + copied(found[1]) + found[2]
    if found := re.fullmatch(r"(t\._foreach_\w+_\(\[[^\]]*\])(.*)", body):
        return mode + found[1] + copied(found[2])
    if found := re.fullmatch(r"(.*\.\w+_\()(.*)(\))", body):
        return mode + found[1] + copied(found[2]) + found[3]
    if found := re.fullmatch(r"(v\d+.*? (?:[-+*/%&|^@]|//|\*\*)?= )(.*)", body):
        return mode + found[1] + copied(found[2])
    return None


def apart_before(libraries, steps):
    """The words where cresset ends as PyTorch does when earlier lines that read their `out=`, which may share memory by
    DLPack, read a copy of it.
    """
    read = re.compile("out=") if any("from_dlpack" in step for step in steps) else OUT_OF_ITSELF
    theirs = [(read.search(step) and with_copies(step)) or step for step in steps]
    return AS_APART if theirs != steps and agrees(libraries, steps, theirs, answered=False) else ""


def copied(text):
    return re.sub(r"\b(v\d+)\b", r"\1.clone()", text)


def agrees_with(libraries, steps, text):
    """Whether PyTorch, given the last step as `text`, ends where cresset ends with the step itself."""
    return agrees(libraries, steps, [*steps[:-1], text], answered=False)


def has_known_elements(libraries, steps, text, operands):
    """Whether PyTorch, given the last step as `text`, ends where cresset ends but for an element that differs as known
    of the step.
    """
    lockstep = Lockstep(libraries)
    found = [lockstep.step(step, instead=text if step is steps[-1] else None) for step in steps]
    is_element = not any(found[:-1]) and found[-1] and re.match(r"v\d+: \S+ instead of \S+ at ", found[-1])
    return bool(is_element and known(text, found[-1], operands.replace("; elements overlap", "")))


def agrees_or_is_known(libraries, steps, theirs, operands):
    """Whether PyTorch, with lines of its own, ends where cresset ends, but for a known place in memory."""
    lockstep = Lockstep(libraries)
    found = [lockstep.step(text, instead=instead) for text, instead in zip(steps, theirs, strict=True)]
    if any(found) and (any(found[:-1]) or "offset" not in found[-1] or not known(steps[-1], found[-1], operands)):
        return False
    tensors, ours = (side.tensors() for side in lockstep.sides)
    for name, tensor in tensors.items():
        looks = lockstep.lead.looks(tensor)
        pair = [memory(x, looks) for x in (tensor, ours[name])]
        if fits(tensor, looks) and lockstep.elements(name, *pair, looks["dtype"]):
            return False
    return True


def agrees_with_saved_copies(libraries, steps, operands):
    """Whether PyTorch, which then notices no change of what it saved, ends where cresset ends, or differs in a known
    way instead. Transforms, which want no hooks for what is saved, are given copies.
    """
    with saving_copies(libraries[0]):
        if agrees(libraries, steps, steps, answered=False):
            return True
        lockstep = Lockstep(libraries)
        found = [lockstep.step(step) for step in steps]
        if not any(found[:-1]) and found[-1] and IN_PLACE not in found[-1]:
            why = found[-1] + circumstances(libraries, steps, found[-1], operands)
            if known(steps[-1], why, operands):
                return True
    theirs = [with_copies(step) if re.match(r"v\d+ = t[.]func[.]", step) else step for step in steps]
    return theirs != steps and agrees(libraries, steps, theirs, answered=False)
