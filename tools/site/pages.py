"""The pages of the site, from docs/ and from the package: python tools/site/pages.py FOLDER.

Pages keep their names. Links to files that are no pages lose the link and keep their words.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference  # noqa: E402

ROOT = reference.ROOT
COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sources():
    """{path in the repository: page}."""
    pages = dict(COPIED)
    for folder in ("docs", "docs/decisions"):
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith(".md"):
                page = os.path.relpath(os.path.join(folder, name), "docs")
                pages[f"{folder}/{name}"] = page.replace("decisions/README.md", "decisions/index.md")
    pages["docs/cresset_in_one_file.py"] = "cresset_in_one_file.md"
    pages["docs/decisions/"] = "decisions/index.md"
    return pages


def relinked(text, path, pages):
    """The text with links between files as links between pages."""

    def link(match):
        words, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        file, mark, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(path), file)) + ("/" if file.endswith("/") else "")
        if there not in pages:
            return words
        return f"[{words}]({os.path.relpath(pages[there], os.path.dirname(pages[path]) or '.')}{mark}{anchor})"

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", link, text)


def main(folder):
    pages = sources()
    for path, page in pages.items():
        if path.endswith("/"):
            continue
        text = text_of(path)
        if path.endswith(".py"):
            text = f"# The whole idea in one file\n\n```python\n{text}```\n"
        out = os.path.join(folder, page)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        with open(out, "w", encoding="utf-8") as file:
            file.write(relinked(text, path, pages) if path.endswith(".md") else text)
    entries = reference.write(folder)
    decisions = [("Overview", "decisions/index.md")]
    for path, page in pages.items():
        if page.startswith("decisions/") and page != "decisions/index.md":
            decisions.append((text_of(path).splitlines()[0].lstrip("# "), page))
    template = text_of("tools/site/mkdocs.yml")
    others = [
        page for page in pages.values() if "/" not in page and f": {page}" not in template
    ]  # new since it was written
    added = "".join(f"\n      - {page}" for page in others)
    template = template.replace("\n      - Add an operation:", f"{added}\n      - Add an operation:")
    for mark, found in (("REFERENCE", entries), ("DECISIONS", decisions)):
        indent = re.search(rf"^( *)- [\w ]+: {mark}$", template, re.M)[1] + "    "
        lines = "".join(f'\n{indent}- "{title}": {file}' for title, file in found)
        template = template.replace(f" {mark}", lines)
    with open(os.path.join(os.path.dirname(folder), "mkdocs.yml"), "w", encoding="utf-8") as file:
        file.write(template)


if __name__ == "__main__":
    main(sys.argv[1])
