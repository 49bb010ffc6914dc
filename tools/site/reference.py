"""The reference: a page for each namespace, with every public name of it, made from signatures and docstrings."""

import enum
import functools
import importlib
import inspect
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sources import Sources  # noqa: E402

import examples  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# (page, module, title)
NAMESPACES = [
    ("cresset", "cresset", "cresset: tensors and functions"),
    ("tensor", "cresset.Tensor", "Tensor and its methods"),
    *(
        (name.replace(".", "_"), f"cresset.{name}", f"cresset.{name}")
        for name in (
            "nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations "
            "nn.utils.prune nn.utils.stateless nn.parallel nn.attention nn.attention.bias "
            "nn.attention.flex_attention optim optim.lr_scheduler optim.swa_utils autograd autograd.forward_ad "
            "autograd.functional autograd.graph func linalg fft special signal.windows sparse nested masked amp "
            "utils.data distributions distributions.constraints distributions.transforms train metrics "
            "metrics.functional debug vision vision.transforms vision.transforms.functional vision.transforms.v2 "
            "vision.models vision.datasets vision.ops vision.io vision.utils serve export onnx jit fx compiler "
            "ao.quantization cuda cuda.memory backends backends.cuda backends.cudnn accelerator cpu distributed "
            "distributed.device_mesh distributed.tensor distributed.tensor.parallel distributed.fsdp "
            "distributed.pipelining distributed.checkpoint distributed.checkpoint.state_dict distributed.optim "
            "distributed.rpc profiler serialization safetensors testing library overrides futures hub "
            "multiprocessing random quasirandom utils.benchmark utils.checkpoint utils.cpp_extension utils.dlpack "
            "utils.tensorboard"
        ).split()
    ),
]

MOST = 170  # names on a page


def module_of(dotted):
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        place, _, name = dotted.rpartition(".")
        return getattr(importlib.import_module(place), name)


def public_names(space):
    """Names and what they mean: functions, classes and values with a docstring of their own; not the modules inside."""
    names = getattr(space, "__all__", None) if inspect.ismodule(space) else None
    found = {}
    for name in sorted(names or dir(space), key=str.lower):
        if name.startswith("_") and not (inspect.isclass(space) and name in ("__init__", "__getitem__", "__setitem__")):
            continue
        try:
            value = getattr(space, name)
        except (AttributeError, RuntimeError, ImportError):
            continue
        home = str(getattr(value, "__module__", None) or "cresset").split(".")[0]
        foreign = (
            home in ("typing", "multiprocessing") if names else home not in ("cresset", "torch")
        )  # what a module merely imports is not its own
        if (inspect.ismodule(value) or foreign) and not inspect.isclass(space):
            continue
        found[name] = value
    return found


class Words(str):
    """A text that shows without quotation marks."""

    __repr__ = str.__str__


def default_of(value):
    """A default as one would write it."""
    if inspect.ismodule(value) or inspect.isroutine(value) or inspect.isclass(value):
        return Words(value.__name__)
    if isinstance(value, enum.Enum):
        return Words(f"{type(value).__name__}.{value.name}")
    if isinstance(value, functools.partial):
        return Words(f"partial({default_of(value.func)}, {', '.join(f'{k}={v!r}' for k, v in value.keywords.items())})")
    if type(value) is tuple:
        return tuple(map(default_of, value))
    return Words("...") if type(value).__repr__ is object.__repr__ else value


def annotation_of(value):
    """An annotation by the names that users know: `Sequence[int]`, not where it is at home."""
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return Words(re.sub(r"~(?=[A-Z])|\b(?:collections\.abc|typing|cresset(?:\.[a-z_]+)*)\.(?=[A-Z])", "", text))


def signature_of(name, value):
    target = value.__init__ if inspect.isclass(value) else value
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return name if not callable(value) else f"{name}(...)"
    empty, parameters = inspect.Signature.empty, []
    for given in signature.parameters.values():
        if given.default is not empty:
            if given.name.startswith("_"):
                continue  # for us and for PyTorch's own code
            given = given.replace(default=default_of(given.default))
        if given.annotation is not empty:
            given = given.replace(annotation=annotation_of(given.annotation))
        parameters.append(given)
    gives = signature.return_annotation
    shown = str(inspect.Signature(parameters, return_annotation=empty if gives is empty else annotation_of(gives)))
    return wrapped(name + re.sub(r"\((self|cls)(, )?", "(", shown, count=1))


def wrapped(text, width=80):
    """A signature on one line, or with a line for each argument."""
    if len(text) <= width:
        return text
    start, depth, parts, at = text.index("(") + 1, 0, [], text.index("(") + 1
    for place in range(start, len(text)):
        letter = text[place]
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            parts.append(text[at:place])
            return (
                text[:start] + "".join(f"\n    {part.strip()}," for part in parts if part.strip()) + "\n" + text[place:]
            )
        if letter == "," and depth == 0:
            parts.append(text[at:place])
            at = place + 1
    return text


def place_of(value):
    """(file, line) where it is written, from the repository's root."""
    try:
        target = inspect.unwrap(value)
        file, line = inspect.getsourcefile(target), inspect.getsourcelines(target)[1]
    except (TypeError, OSError, ValueError):
        return None
    inside = file.replace(os.sep, "/").rpartition("/cresset/")
    return (f"src/cresset/{inside[2]}", max(line, 1)) if inside[1] else None


def plain(text):
    """Text as Markdown that says the same: marks outside of code are escaped."""
    parts = re.split(r"(``[^`]*``|`[^`\n]*`)", text)
    return "".join(
        part
        if part.startswith("`")
        else re.sub(r"([*_\[\]<>|])", r"\\\1", part).replace("\\<", "&lt;").replace("\\>", "&gt;")
        for part in parts
    )


def described(text):
    """A docstring as Markdown: paragraphs, arguments as a list, examples as code."""
    lines, found, at = inspect.cleandoc(text).splitlines(), [], 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith(">>>"):
            block = []
            while at < len(lines) and lines[at].strip():
                block.append(lines[at].strip() if lines[at].lstrip().startswith((">>>", "...")) else lines[at])
                at += 1
            found += ["", "```pycon", *block, "```", ""]
            continue
        if re.fullmatch(r"(Args|Attributes|Returns|Raises|Shape):\s*", line):
            found += ["", f"**{line.strip()[:-1]}**", ""]
        elif match := re.match(r" {4}([\w*, ]+): (.*)", line):
            found.append(f"- **{plain(match[1])}**: {plain(match[2])}")
        elif line.startswith("        "):
            found.append(f"  {plain(line.strip())}")
        else:
            found.append(plain(line))
        at += 1
    return "\n".join(found)


def entry(shown, name, value, sources, level="##", example=None):
    """A name on its page; `example` is the text of a session, if the docstring has none."""
    lines = [f"{level} {name.replace('_', chr(92) + '_')}", "", "```python", signature_of(shown, value), "```", ""]
    text = inspect.getdoc(value) if callable(value) or isinstance(value, property) else None
    if text and not (inspect.isclass(value) and text == inspect.getdoc(object)):
        lines += [described(text), ""]
    elif not callable(value) and not isinstance(value, property):
        lines += [f"A value: `{str(value)[:80]}`", ""]
    if example:
        lines += ["```pycon", example, "```", ""]
    if place := place_of(value.fget if isinstance(value, property) else value):
        lines += [f"Source: {sources.link(*place)}", ""]
    elif name.rstrip("_") in sources.definitions and level == "##":
        lines += [f"Formula and source: {sources.link(*sources.definitions[name.rstrip('_')])}", ""]
    return lines


def methods_of(kind):
    """Public methods that a class has of its own; those of its bases (`forward`) only where it has words for them."""
    own, inherited = {}, {name for base in kind.__mro__[1:] for name in vars(base)}
    for name, value in vars(kind).items():
        if not name.startswith("_") and (
            inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod, property))
        ):
            value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if value.__doc__ or name not in inherited:
                own[name] = value
    return own


def parts_of(page, title, names):
    """(page, title, names) of a namespace: one, or several by the alphabet where it would be slow to read as one."""
    if len(names) <= MOST:
        return [(page, title, names)]
    letters = {}
    for name in names:
        letters.setdefault(name.lstrip("_")[0].upper() if name[0] != "_" else "A", []).append(name)
    groups = [[]]
    for letter in sorted(letters):
        if groups[-1] and sum(len(letters[known]) for known in groups[-1]) + len(letters[letter]) > MOST:
            groups.append([])
        groups[-1].append(letter)
    parts = []
    for group in groups:
        span = group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}"
        chosen = {name: names[name] for letter in group for name in letters[letter]}
        parts.append((f"{page}_{span.replace(' ', '_').lower()}", f"{title}, {span}", chosen))
    return parts


def write(folder):
    """Write the pages; [(title, file)] for the navigation."""
    os.makedirs(os.path.join(folder, "reference"), exist_ok=True)
    pages, count, without = [], 0, []
    found, sources = examples.Examples(), Sources(ROOT)
    for namespace_page, dotted, namespace_title in NAMESPACES:
        space = module_of(dotted)
        head = inspect.getdoc(space) or ""
        head = described(head) if inspect.ismodule(space) else plain(head.partition("\n")[0])
        for page, title, names in parts_of(namespace_page, namespace_title, public_names(space)):
            lines = [f"# {title}", "", head, ""]
            for name, value in names.items():
                count += 1
                if callable(value) and not inspect.getdoc(value):
                    without.append(f"{dotted}.{name}")
                example = found.of(dotted, name, value)
                lines += entry(f"{dotted}.{name}", name, value, sources, example=example)
                if reason := found.reasons.get(f"{dotted}.{name}"):
                    lines += [f"No example is run here: {plain(reason)}.", ""]
                if inspect.isclass(value) and not inspect.isclass(space):
                    for method, function in methods_of(value).items():
                        lines += entry(f"{name}.{method}", f"{name}.{method}", function, sources, "###")
            file = f"reference/{page}.md"
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                out.write("\n".join(lines))
            pages.append((dotted + title.removeprefix(namespace_title), file))
    sources.write(folder)
    bare = [f"{name}: it has no docstring" for name in without]
    bare += [f"{name}: no example, and no reason for that (tools/site/examples)" for name in found.missing]
    if found.failed or bare:
        raise SystemExit("\n".join([*found.failed, *bare]))
    summary = f"{count} names in {len(NAMESPACES)} namespaces. {found.summary()}."
    index = ["# Reference", "", summary, "", *(f"- [{title}]({os.path.basename(file)})" for title, file in pages)]
    with open(os.path.join(folder, "reference", "index.md"), "w", encoding="utf-8") as out:
        out.write("\n".join(index) + "\n")
    print(f"reference: {summary}")
    return [("Overview", "reference/index.md"), *pages]
