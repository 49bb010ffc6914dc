"""The pages of the site, from docs/ and from the package: python tools/site/pages.py FOLDER [--quick].

Pages keep their names. Links to files that are no pages lose the link and keep their words. The programs of the
tutorials and their like are run, and what they show stands below them; --quick leaves that out.
"""

import os
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs  # noqa: E402
import reference  # noqa: E402

ROOT = reference.ROOT
COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}

FOLDERS = ("docs", "docs/tutorials", "docs/howto", "docs/errors", "docs/decisions")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sources():
    """{path in the repository: page}."""
    pages = dict(COPIED)
    for folder in FOLDERS:
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith(".md"):
                page = os.path.relpath(os.path.join(folder, name), "docs")
                pages[f"{folder}/{name}"] = page.replace("/README.md", "/index.md")
    pages["docs/cresset_in_one_file.py"] = "cresset_in_one_file.md"
    pages["docs/decisions/"] = "decisions/index.md"
    return pages


def relinked(text, path, pages):
    """The text with links between files as links between pages."""

    def link(match):
        words, target = match[1], match[2]
        if target is None or re.match(r"[a-z]+:|#", target):
            return match[0]
        file, mark, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(path), file)) + ("/" if file.endswith("/") else "")
        if there not in pages:
            return words
        return f"[{words}]({os.path.relpath(pages[there], os.path.dirname(pages[path]) or '.')}{mark}{anchor})"

    # Whichever comes first: `module[0](x)` in code is no link, and a link's words may be code.
    return re.sub(r"^```.*?^```$|\[([^\]]+)\]\(([^)\s]+)\)|`[^`\n]+`", link, text, flags=re.M | re.S)


def main(folder, quick=False):
    pages, to_run, start, pictures = sources(), set() if quick else set(programs.pages()), time.monotonic(), 0
    for path, page in pages.items():
        if path.endswith("/"):
            continue
        text = text_of(path)
        if path in to_run:
            with tempfile.TemporaryDirectory() as place:
                results = programs.start(os.path.join(ROOT, path), place)
            pictures += programs.pictures_in(results)
        if path.endswith(".py"):
            text = f"# The whole idea in one file\n\n```python\n{text}```\n"
        out = os.path.join(folder, page)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        with open(out, "w", encoding="utf-8") as file:
            text = relinked(text, path, pages) if path.endswith(".md") else text
            file.write(programs.with_results(text, results) if path in to_run else text)
    print(f"programs: {len(to_run)} pages run in {time.monotonic() - start:.0f} s, {pictures} pictures drawn")
    for name in ("site.css", "iframe-worker.js"):
        shutil.copy(os.path.join(ROOT, "tools", "site", name), folder)
    entries = reference.write(folder)

    def inside(place):
        """(title, page) of a folder's pages: its index, then the others in their order there."""
        index = text_of(f"docs/{place}/README.md")
        linked = re.findall(r"\]\(([\w-]+\.md)\)", index)
        files = sorted(
            (path for path in pages if path.startswith(f"docs/{place}/") and path.endswith(".md")),
            key=lambda path: linked.index(os.path.basename(path)) if os.path.basename(path) in linked else -1,
        )
        return [(text_of(path).splitlines()[0].lstrip("# "), pages[path]) for path in files]

    template = text_of("tools/site/mkdocs.yml")
    others = [
        page for page in pages.values() if "/" not in page and f": {page}" not in template
    ]  # new since it was written
    added = "".join(f"\n      - {page}" for page in others)
    template = template.replace("\n      - Add an operation:", f"{added}\n      - Add an operation:")
    lists = {place.upper(): inside(place) for place in ("tutorials", "howto", "errors", "decisions")}
    for mark, found in {"REFERENCE": entries, **lists}.items():
        indent = re.search(rf"^( *)- [\w ]+: {mark}$", template, re.M)[1] + "    "
        lines = "".join(f'\n{indent}- "{title}": {file}' for title, file in found)
        template = template.replace(f" {mark}", lines)
    with open(os.path.join(os.path.dirname(folder), "mkdocs.yml"), "w", encoding="utf-8") as file:
        file.write(template)


if __name__ == "__main__":
    main(sys.argv[1], "--quick" in sys.argv)
