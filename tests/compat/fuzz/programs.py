"""Runs random programs on cresset and PyTorch, step by step, and compares all that can be seen after each step.

    python tests/compat/fuzz/programs.py --seed S --count N [--alone] [--only I [--script]] [--known] [--all]

A program is a list of lines over numbered variables (`v3 = v1.view(2, 3)`), drawn from what the variables are by then
(steps.py). A process that has imported the libraries forks one for each batch; when that dies or stands still, the
program and the step are named. A failing program is made as short as it can be. `--only I --script` prints program I of
a seed as a script that runs by itself. `--alone` runs cresset without PyTorch beside it, for memory errors under a
sanitizer. The last line is: `programs: N programs, S steps, R refused by both, K known differences, findings F`.
"""

import argparse
import functools
import gc
import inspect
import itertools
import json
import os
import random
import re
import sys
import tempfile
import traceback
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import steps_autograd  # noqa: E402, F401
import steps_memory  # noqa: E402, F401
import steps_training  # noqa: E402, F401
import steps_values  # noqa: E402, F401
import vocabulary  # noqa: E402
from children import MOST_MEMORY, RECORD, fork, note, watch  # noqa: E402
from circumstances import apart_before, circumstances, through  # noqa: E402
from differences import known  # noqa: E402
from lockstep import Lockstep  # noqa: E402
from side import memory, numbers, span  # noqa: E402
from steps import Maker  # noqa: E402

BATCH = 500  # programs that one child runs
SHORTENED = 3  # findings of one kind that are made as short as they can be; more say nothing new


def libraries(alone):
    """What programs run on, with all imported that comes late: a child would do it again and again."""
    import cresset

    warnings.simplefilter("ignore")
    libs = [cresset]
    if not alone:
        import torch
        import torch._dynamo  # torch.func wants it

        libs = [torch, cresset]
    for library in libs:
        library.set_num_threads(1)
        one = library.ones(1)
        library.func.vmap(lambda x: x * 2 + 1)(one)
        library.func.jvp(lambda x: x * x, (one,), (one,))
        library.nn.functional.relu(one)
        library.manual_seed(0)
    gc.freeze()  # a program that collects garbage looks at its own
    return libs


def run_program(lockstep, seed, number, between=lambda step, who: None):
    """Run one program to its end or to the first difference that is seen: (that or None, how often steps were refused,
    whether every step was looked at).
    """
    rng = random.Random(f"{seed}/{number}")
    lockstep.begin()
    maker = Maker(rng, lockstep.lead)
    length = rng.randint(5, 30)
    every = 1 if rng.random() < 0.85 else rng.randint(2, 6)  # what is looked at is made plain: let some go on unseen
    refused = 0
    for k in range(length):
        text = maker.line()
        if (
            every > 1 and (text.startswith("say(") or ".view(t." in text) and (why := lockstep.look())
        ):  # a text is compared as it is, and so is a view as integers: of the same bits
            return why, refused, every == 1
        why = lockstep.step(text, (k + 1) % every == 0 or k == length - 1, functools.partial(between, text))
        if why:
            return why, refused, every == 1
        refused += lockstep.lead.error is not None
    return None, refused, every == 1


def replay(lockstep, steps):
    """Run lines again: (the first difference or None, the lines up to it that did not ask for a variable that is not
    there).
    """
    lockstep.begin()
    kept = []
    for text in steps:
        why = lockstep.step(text)
        if lockstep.lead.error and lockstep.lead.error[0] == "NameError":
            lockstep.steps.pop()
            lockstep.seen.pop()
            continue
        kept.append(text)
        if why:
            return why, kept
    return None, kept


def kind_of(step, why):
    """What two findings have in common that are probably the same."""
    words = re.sub(r"\b[vnmo]\d+\b", "_", re.sub(r"^with t\.no_grad\(\): ", "", step))
    called = re.findall(r"[.]?([A-Za-z_]\w*)\(", words) or [re.sub(r"\W*_\W*", " ", words).strip()[:12]]
    plain = re.sub(r"[-+]?\d[\w.+-]*|\bv\d+\b|nan|inf|True|False", "#", why)
    return f"{called[-1] if called[0] in ('say', 'together', 'in_thread') else called[0]}: {plain[:70]}"


def shorten(lockstep, steps, why):
    """The fewest lines that still end in a difference of the same kind."""
    kind = kind_of(steps[-1], why)
    found, kept = replay(lockstep, steps)
    if not found:
        return steps, why  # seen only when looked at less often
    steps, why = kept, found
    kind = kind_of(steps[-1], why)
    position = len(steps) - 2
    while position >= 0:
        fewer = steps[:position] + steps[position + 1 :]
        found, kept = replay(lockstep, fewer)
        if found and kind_of(kept[-1], found) == kind:
            steps, why = kept, found
            position = min(position, len(steps) - 1)
        position -= 1
    return steps, why


def operands(lockstep, steps):
    """The variables of the last line before it ran, in words."""
    replay(lockstep, steps[:-1])
    side, said = lockstep.lead, []
    tensors = side.tensors()
    for name in dict.fromkeys(re.findall(r"\bv\d+\b", steps[-1])):
        if name in tensors:
            looks = side.looks(tensors[name])
            elements = as_fractions(memory(tensors[name], looks), looks["dtype"])
            shown = elements.tolist() if span(looks) <= 24 else "..." + uncommon(elements)
            flags = "".join(f" {word}" for word in ("requires_grad", "is_leaf", "is_conj") if looks[word])
            said.append(
                f"{name} <{looks['shape']} {looks['dtype']} {looks['strides']}+{looks['offset']}{flags} version "
                f"{looks['version']} {shown}>"
            )
    named = [name for name in re.findall(r"\bv\d+\b", steps[-1]) if name in tensors]
    storages = [tensors[name].untyped_storage() for name in named]
    places = sorted((s.data_ptr(), s.data_ptr() + s.nbytes()) for s in storages)  # what was lent may begin inside
    if any(second[0] < max(first[1], first[0] + 1) for first, second in itertools.pairwise(places)):
        said.append("operands share memory")
    if any(0 not in tensors[name].stride() and overlaps(tensors[name]) for name in named):
        said.append("elements overlap")
    return "; ".join(said)


def as_fractions(elements, dtype):
    """The elements, those of half precision that NumPy does not know as single ones."""
    kind = {"bfloat16": np.float32, "complex32": np.complex64}.get(dtype)
    return numbers(elements, dtype).astype(kind) if kind else elements


def uncommon(elements):
    """Whether nan, infinity, or numbers whose squares overflow are among elements that are too many to be shown."""
    if elements.dtype.kind not in "fc":
        return ""
    sizes = np.abs(elements[np.isfinite(elements)])
    huge = sizes > np.sqrt(np.finfo(elements.dtype).max)
    said = {" nan": np.isnan(elements), " inf": np.isinf(elements), " huge": huge}
    return "".join(word for word, found in said.items() if found.any())


def overlaps(tensor):
    """Whether two elements of a tensor share memory."""
    places = {0}
    for size, stride in zip(tensor.shape, tensor.stride()):
        places = {place + i * stride for place in places for i in range(size)}
    return len(places) < tensor.numel()


def judged(lockstep, libs, steps, why, unseen=False):
    """The difference with its circumstances, its operands, and why it is known, or None. `unseen`: it is gone when
    every step is looked at.
    """
    values = operands(lockstep, steps)
    why += circumstances(libs, steps, why, values)
    reason = known(steps[-1], why, values)
    if unseen and not reason:
        why += "; only where fewer steps are looked at" + through(steps) + apart_before(libs, steps)
        reason = known(steps[-1], why, values)
    return why, values, reason


def run_batch(libs, seed, first, count, journal):
    """Programs from `first` on; prints what was found as JSON, a line each."""
    lockstep = Lockstep(libs)
    totals = dict.fromkeys(("programs", "steps", "refused", "known", "findings"), 0)
    seen = {}
    for number in range(first, first + count):
        said = lambda step, who, number=number: note(journal, f"{number} {who} {step}\n")  # noqa: E731
        try:
            why, refused, looked_at = run_program(lockstep, seed, number, said)
            steps = list(lockstep.steps)
            totals["programs"] += 1
            totals["steps"] += len(steps)
            totals["refused"] += refused
            if why:
                kind = kind_of(steps[-1], why)
                seen[kind] = seen.get(kind, 0) + 1
                if len(libs) > 1:
                    unseen = False
                    if not looked_at:  # the step that made the difference may be an earlier one
                        found, kept = replay(lockstep, steps)
                        steps, why = (kept, found) if found else (steps, why)
                        unseen = not found
                    why, values, reason = judged(lockstep, libs, steps, why, unseen)
                    if seen[kind] <= SHORTENED and not reason:
                        steps, why = shorten(lockstep, steps, why)
                        why, values, reason = judged(lockstep, libs, steps, why, unseen)
                else:
                    values, reason = "", None
                totals["known" if reason else "findings"] += 1
                print(
                    json.dumps(
                        {
                            "number": number,
                            "kind": kind_of(steps[-1], why),
                            "why": why,
                            "steps": steps,
                            "operands": values,
                            "known": reason,
                        }
                    ),
                    flush=True,
                )
        except Exception:
            totals["findings"] += 1
            print(
                json.dumps(
                    {
                        "number": number,
                        "kind": "the fuzzer failed",
                        "why": traceback.format_exc()[-1500:],
                        "steps": list(lockstep.steps),
                        "operands": "",
                        "known": None,
                    }
                ),
                flush=True,
            )
        os.pwrite(journal, " ".join(f"{k}={v}" for k, v in totals.items()).encode().ljust(400), RECORD)


def run(count, seed, alone=False, first=0):
    """All programs: a list of findings, one of known differences, and the totals."""
    libs, limit = libraries(alone), first + count
    found, expected, totals = [], [], {}
    sanitized = "asan" in os.environ.get("LD_PRELOAD", "")  # its shadow is address space
    while first < limit:
        size = min(BATCH, limit - first)
        with tempfile.TemporaryFile() as journal, tempfile.TemporaryFile("w+") as output:
            status = watch(
                fork(
                    output,
                    functools.partial(run_batch, libs, seed, first, size, journal.fileno()),
                    0 if sanitized else MOST_MEMORY,
                ),
                journal,
            )
            output.seek(0)
            printed = output.read()
            for line in printed.splitlines():
                if line.startswith('{"number"'):
                    finding = json.loads(line)
                    (expected if finding["known"] else found).append(finding)
            for part in os.pread(journal.fileno(), 400, RECORD).decode().strip("\0 ").split():
                key, _, value = part.partition("=")
                totals[key] = totals.get(key, 0) + int(value)
            if status == 0:
                first += size
                continue
            line = os.pread(journal.fileno(), RECORD, 0).decode(errors="replace").strip()
            if not line or os.WIFEXITED(status):
                raise RuntimeError(f"the fuzzer itself failed after {line!r}: {printed[-3000:]}")
            number, who, step = line.split(" ", 2)
            if who == "cresset":
                found.append(
                    {
                        "number": int(number),
                        "kind": f"ended by signal {os.WTERMSIG(status)}",
                        "why": printed[-3000:],
                        "steps": [step],
                        "operands": "",
                        "known": None,
                    }
                )
            else:
                expected.append(
                    {
                        "number": int(number),
                        "kind": f"PyTorch ended by signal {os.WTERMSIG(status)}",
                        "why": printed[-300:],
                        "steps": [step],
                        "operands": "",
                        "known": "PyTorch ends the process",
                    }
                )
            totals["programs"] = totals.get("programs", 0) + 1
            first = int(number) + 1
    return found, expected, totals


def script(steps):
    """A program as a file that runs by itself: `python file.py [torch|cresset]`."""
    lines = [
        inspect.getsource(vocabulary),
        "import sys",
        "",
        "names = vocabulary(__import__(sys.argv[1] if len(sys.argv) > 1 else 'cresset'))",
        "",
        "",
        "def step(text):",
        "    print('>>>', text)",
        "    try:",
        "        exec(text, names)",
        "    except Exception as error:",
        "        print(f'{type(error).__name__}: {error}')",
        "    for name in [n for n in names if n[0] == 'v' and n[1:].isdigit() and n in text]:",
        "        print(f'{name} = {names[name]} strides {names[name].stride()} version {names[name]._version}')",
        "    while names['diary']:",
        "        print('said', names['diary'].pop(0))",
        "",
        "",
        *(f"step({text!r})" for text in steps),
    ]
    return "\n".join(lines)


def shown(finding, seed):
    listed = "\n".join(f"    {line}" for line in finding["steps"])
    reason = f" ({finding['known']})" if finding["known"] else ""
    return (
        f"{finding['kind']}{reason}\n  program {seed}/{finding['number']}: {finding['why']}\n{listed}\n  "
        f"{finding['operands'][:900]}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", default="0")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    parser.add_argument("--only", type=int, help="run this program here, without a child, and print its steps")
    parser.add_argument(
        "--script", action="store_true", help="with --only: print it, shortened, as a script that runs by itself"
    )
    parser.add_argument("--known", action="store_true", help="print the differences that are on purpose, too")
    parser.add_argument("--all", action="store_true", help="print every finding, not one of each kind")
    given = parser.parse_args()
    if given.only is not None:
        lockstep = Lockstep(libraries(given.alone))
        why, *_ = run_program(
            lockstep,
            given.seed,
            given.only,
            (lambda *_: None) if given.script else lambda step, who: print(who, step, flush=True),
        )
        steps = list(lockstep.steps)
        if why and not given.alone:
            steps, why = shorten(lockstep, steps, why)
        print(script(steps) if given.script else f"{why}\n" + "\n".join(steps))
        return bool(why)
    found, expected, totals = run(given.count, given.seed, given.alone, given.first)
    for listed, wanted in ((expected, given.known), (found, True)):
        groups = {}
        for finding in listed if wanted else ():
            groups.setdefault(finding["kind"], []).append(finding)
        for group in sorted(groups.values(), key=len):
            for finding in group if given.all else [min(group, key=lambda f: len(f["steps"]))]:
                print(f"[{len(group)}x] {shown(finding, given.seed)}")
    print(
        f"programs: {totals.get('programs', 0)} programs, {totals.get('steps', 0)} steps, {totals.get('refused', 0)} "
        f"refused by both, {len(expected)} known differences, findings {len(found)}"
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
