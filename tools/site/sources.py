"""Sources as pages, for links from the reference: one plain HTML file a source file, with an anchor for each line."""

import html
import os
import re

STYLE = (
    ":root{color-scheme:light dark}body{margin:1rem;font:13px/1.45 monospace}pre{margin:0}"
    "a{color:GrayText;text-decoration:none;display:inline-block;width:4em;text-align:right;margin-right:1.5em;user-select:none}"
    "span{display:block;min-height:1.45em}span:target{background:#fd83}"
)


class Sources:
    """Which files are linked to, and where operators are defined."""

    def __init__(self, root):
        self.root, self.linked = root, set()
        self.definitions = {}
        for folder, _, files in os.walk(os.path.join(root, "src", "cresset", "ops")):
            for file in sorted(files):
                if file.endswith(".py"):
                    self.find_definitions(os.path.relpath(os.path.join(folder, file), root))

    def find_definitions(self, path):
        """Operators are `@pointwise` functions or `name = operator("name", ...)`; the others are functions."""
        for number, line in enumerate(self.text_of(path).splitlines(), 1):
            if match := re.match(r'(?:def (\w+)\(|(?:\w+ = )?operator\(\s*"(\w+)")', line):
                self.definitions.setdefault(match[1] or match[2], (path, number))

    def text_of(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def link(self, path, line):
        """A link to a line, from a page of the reference."""
        self.linked.add(path)
        return f"[`{path}`, line {line}](../source/{path}.html#L{line})"

    def write(self, folder):
        for path in sorted(self.linked):
            lines = [
                f'<span id="L{number}"><a href="#L{number}">{number}</a>{html.escape(line)}</span>'
                for number, line in enumerate(self.text_of(path).splitlines(), 1)
            ]
            out = os.path.join(folder, "source", f"{path}.html")
            os.makedirs(os.path.dirname(out), exist_ok=True)
            with open(out, "w", encoding="utf-8") as file:
                file.write(
                    f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{path}</title><style>{STYLE}</style>'
                    f"<h1>{path}</h1><pre>{''.join(lines)}</pre></html>\n"
                )
