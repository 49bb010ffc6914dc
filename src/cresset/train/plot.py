"""`Run.plot()`: the curves of a run where one is: in a notebook as a picture, in a terminal as text, in a file."""

import os

from .progress import short
from .report import NOT_CURVES, STYLE, charts_of, report_html
from .report import chart as draw_chart


def scoped(style, place=".cresset-plot"):
    """The report's rules for one element: a notebook's other cells keep theirs.

    >>> scoped("body{margin:0}\\nth,td{padding:0}")
    '.cresset-plot{margin:0}\\n.cresset-plot th,.cresset-plot td{padding:0}'
    """
    rules = []
    for rule in style.strip().splitlines():
        selectors, brace, rest = rule.partition("{")
        if not selectors.startswith(("@", ":root", "body")):
            selectors = ",".join(f"{place} {selector}" for selector in selectors.split(","))
        rules.append((selectors + brace + rest).replace(":root", place).replace("body{", f"{place}{{"))
    return "\n".join(rules)


class Plot:
    """Curves of a run. A notebook shows it, `print` draws it with letters, `save` writes a page."""

    def __init__(self, lines, names, title):
        self.title = title
        self.lines = [
            {key: value for key, value in line.items() if key in NOT_CURVES or key.removeprefix("val_") in names}
            for line in lines
        ]

    def save(self, path):
        """Write the curves as an HTML page; returns the path."""
        path = os.fspath(path)
        if not path.lower().endswith((".html", ".htm")):
            raise ValueError(f"Plot.save: a page is written, so the name should end with .html, got {path!r}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(report_html(self.lines, self.title))
        return path

    def _repr_html_(self):
        last = max((line["step"] for line in self.lines), default=1)
        charts = "".join(draw_chart(title, curves, last) for title, curves in charts_of(self.lines))
        return f"<div class='cresset-plot'><style>{scoped(STYLE)}</style><main>{charts}</main></div>"

    def __str__(self):
        from cresset.cli.terminal import curve

        drawn = []
        for title, curves in charts_of(self.lines):
            for line in curves:
                values = [y for _, y in line.finite()]
                name = title if len(curves) == 1 else f"{title}, {line.name}"
                drawn.append(curve(values, title=name, unit=short))
        return "\n".join(drawn) or "no epoch is done yet"

    __repr__ = __str__


def plot(run, names):
    """The Plot of a run's epochs; `names`: of numbers in its history, all but the learning rate unless given."""
    known = [name for line in run.history for name in line if name not in NOT_CURVES]
    known = list(dict.fromkeys(name.removeprefix("val_") for name in known))
    wanted = [name.removeprefix("val_") for name in names] or [name for name in known if name != "lr"]
    for name in wanted:
        if name not in known:
            raise ValueError(
                f"Run.plot: there is no {name!r} in the history; there are {', '.join(known) or 'none yet'}"
            )
    return Plot([{"kind": "epoch", **line} for line in run.history], set(wanted), repr(run))
