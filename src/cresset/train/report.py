"""The report of a run: one HTML file with its curves as SVG. It needs no script and nothing from elsewhere, and follows
the reader's choice of light or dark."""

import html
import math
import os

from cresset.serialization.quoting import printable

from .progress import duration, short
from .records import number, read_records

WIDTH, HEIGHT = 560, 280
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 40
MAX_POINTS = 600  # of a curve; where there are more, each point spans the range of several
MAX_NAMES = 100  # numbers that get a chart and a column
MAX_CELLS = 50_000  # of the table; where there are more, it has the last epochs only
HUGE, TINY = 1e300, 1e-300  # beyond these, differences and quotients of values are not numbers any more

NOT_CURVES = {"kind", "time", "epoch", "step", "batch", "seed"}


class Curve:
    """A named line of (x, y) points in one of the report's colors: "train", "train faint" or "validation"."""

    def __init__(self, name, color, points, *, marks=False):
        self.name, self.color, self.points, self.marks = name, color, points, marks

    def finite(self):
        return [(x, y) for x, y in self.points if math.isfinite(y)]


def _text(value, length=500):
    """Text from a record as a part of the page."""
    return html.escape(printable(str(value), length), quote=True)


def write_report(run_path, out_path=None):
    """Write the report of the run recorded in `run_path`, its JSONL file or the folder that `fit` was given.

    Args:
        run_path: "runs/first/run.jsonl" or "runs/first".
        out_path: the HTML file; beside the record, as "report.html", unless given.

    Returns the path of the report.

    >>> records = cresset.train.records.Records("run.jsonl")
    >>> records.write("epoch", epoch=1, step=10, loss=0.5)
    >>> records.close()
    >>> cresset.train.write_report("run.jsonl", "report.html")
    'report.html'
    """
    run_path = os.fspath(run_path)
    if os.path.isdir(run_path):
        run_path = os.path.join(run_path, "run.jsonl")
    if not os.path.exists(run_path):
        raise FileNotFoundError(
            f"write_report: there is no record of a run at {run_path}; fit writes one when it is given folder=, "
            "`cresset train` with --run"
        )
    out_path = os.path.join(os.path.dirname(run_path), "report.html") if out_path is None else os.fspath(out_path)
    lines = read_records(run_path)
    if not lines:
        raise ValueError(f"write_report: {run_path} has no lines; the run ended before its first record")
    name = os.path.basename(os.path.dirname(os.path.abspath(run_path))) or "run"
    text = report_html(lines, name)
    with open(out_path, "w", encoding="utf-8") as file:
        file.write(text)
    return out_path


def report_html(lines, name):
    """The report as text."""
    last_step = max((line["step"] for line in lines if "step" in line), default=1)
    name = _text(name)
    charts = "".join(chart(title, curves, last_step) for title, curves in charts_of(lines))
    body = (
        f"<h1>{name}</h1>{_facts(lines)}<main>{charts or '<p>No numbers were recorded yet.</p>'}</main>{_table(lines)}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{name}</title><style>{STYLE}</style></head><body>{body}</body></html>\n'
    )


def charts_of(lines):
    """(title, curves) of each number that was recorded: training and validation of the same number share a chart."""
    epochs = [line for line in lines if line["kind"] == "epoch"]
    steps = [line for line in lines if line["kind"] == "step"]
    names = {}  # in order of appearance: the number's name without "val_", and whether epochs have it
    for line in (*epochs, *steps):
        for key, value in line.items():
            if len(names) < MAX_NAMES and key not in NOT_CURVES and number(value) is not None:
                names.setdefault(key.removeprefix("val_"), None)
    charts = []
    for name in names:
        curves = []
        of_steps = _points(steps, name)
        of_epochs = _points(epochs, name)
        if of_steps:
            faint = "train faint" if of_epochs else "train"
            curves.append(Curve("each step" if of_epochs else name, faint, of_steps))
        if of_epochs and not (of_steps and name == "lr"):
            curves.append(Curve("training" if name != "lr" else "lr", "train", of_epochs, marks=True))
        elif of_epochs:
            curves[0].color, curves[0].name = "train", "lr"
        if validation := _points(epochs, f"val_{name}"):
            curves.append(Curve("validation", "validation", validation, marks=True))
        charts.append((TITLES.get(name, name), curves))
    return charts


TITLES = {"lr": "learning rate", "samples_per_second": "samples a second", "grad_norm": "norm of the gradient"}
ALWAYS_LINEAR = {"learning rate", "samples a second"}


def _points(lines, name):
    numbers = ((line.get("step", line.get("epoch", 0)), number(line[name])) for line in lines if name in line)
    return [(x, _drawable(y)) for x, y in numbers if y is not None]


def _drawable(y):
    """A number that a scale can hold: nan for what is too large for it, 0 for what is too small."""
    return 0.0 if abs(y) < TINY else y if abs(y) < HUGE or math.isinf(y) else math.nan


# --- One chart --------------------------------------------------------------------------------------------------------


def chart(title, curves, last_step):
    """A figure with axes, curves and a legend; all charts of a report reach from step 0 to `last_step`."""
    points = [point for curve in curves for point in curve.finite()]
    heading = f"<figure><figcaption>{_text(title)}"
    if not points:
        return f"{heading}</figcaption><p>None of its values is finite.</p></figure>"
    ys = [y for _, y in points]
    is_log = title not in ALWAYS_LINEAR and min(ys) > 0 and max(ys) / min(ys) > 50
    across = Scale(0, max(last_step, 1), LEFT, WIDTH - RIGHT)
    up = Scale(min(ys), max(ys), HEIGHT - BOTTOM, TOP, is_log=is_log, room=0.05)
    parts = []
    ticks = up.ticks()
    for tick in ticks:
        y = up(tick)
        parts.append(
            f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/><text class="tick" x="{LEFT - 8}" '
            f'y="{y + 4:.1f}" text-anchor="end">{_tick_text(tick, None if is_log else max(map(abs, ticks)))}</text>'
        )
    for tick in across.ticks(whole=True):
        parts.append(
            f'<text class="tick" x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" '
            f'text-anchor="middle">{_tick_text(tick)}</text>'
        )
    parts.append(
        f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/><text class="tick" '
        f'x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">steps</text>'
    )
    for curve in curves:
        parts.append(_line(curve, across, up))
    legend = ""
    if len(curves) > 1 or curves[0].color == "validation":
        legend = "".join(
            f'<span class="key"><i class="{curve.color}"></i>{_text(curve.name)}</span>' for curve in curves
        )
    log_note = '<span class="note">logarithmic</span>' if is_log else ""
    label = _text(f"{title}: {', '.join(f'{c.name} ends at {short(c.points[-1][1])}' for c in curves)}")
    return (
        f'{heading}{log_note}<span class="legend">{legend}</span></figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{label}">{"".join(parts)}</svg></figure>'
    )


def _line(curve, across, up):
    """The curve, broken where it is not finite; epochs get marks that say their value when pointed at."""
    runs = [[]]
    for x, y in _thinned(curve.points):
        if math.isfinite(y):
            runs[-1].append(f"{across(x):.1f},{up(y):.1f}")
        elif runs[-1]:
            runs.append([])
    lines = "".join(
        f'<polyline class="{curve.color}" points="{" ".join(run if len(run) > 1 else run * 2)}"/>'
        for run in runs
        if run
    )
    if not curve.marks or len(curve.points) > 100:
        return lines
    marks = "".join(
        (
            f'<circle class="{curve.color}" cx="{across(x):.1f}" cy="{up(y):.1f}" r="3"><title>{_text(curve.name)} '
            f"{short(y)} at step {x}</title></circle>"
        )
        for x, y in curve.finite()
    )
    return lines + marks


def _thinned(points):
    """At most MAX_POINTS points: of each stretch its least and its greatest, in their order."""
    if len(points) <= MAX_POINTS:
        return points
    stride = math.ceil(2 * len(points) / MAX_POINTS)
    found = []
    for start in range(0, len(points), stride):
        part = points[start : start + stride]
        finite = [p for p in part if math.isfinite(p[1])]
        if len(finite) < len(part):
            found.append((part[0][0], math.nan))
        if finite:
            found += sorted({min(finite, key=lambda p: p[1]), max(finite, key=lambda p: p[1])})
    return found


class Scale:
    """Maps values to places on the page, linearly or by logarithm."""

    def __init__(self, low, high, start, end, *, is_log=False, room=0.0):
        self.is_log = is_log
        low, high = (math.log10(low), math.log10(high)) if is_log else (low, high)
        if high == low:
            room_there = abs(low) * 0.1 or 1.0
            low, high = low - room_there, high + room_there
        extra = (high - low) * room
        self.low, self.high, self.start, self.end = low - extra, high + extra, start, end

    def __call__(self, value):
        value = math.log10(value) if self.is_log else value
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, whole=False):
        """About five round values within the range."""
        if self.is_log:
            decades = range(math.ceil(self.low), math.floor(self.high) + 1)
            if len(decades) >= 3:
                every = math.ceil(len(decades) / 6)
                return [10.0**k for k in decades][::every]
            return [
                m * 10.0**k
                for k in range(math.floor(self.low), math.ceil(self.high) + 1)
                for m in (1, 2, 5)
                if self.low <= math.log10(m * 10.0**k) <= self.high
            ]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(m for m in (1, 2, 5, 10, 20) if (self.high - self.low) / (m * step) <= 5)
        if whole:
            step = max(1, round(step))
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _tick_text(value, largest=None):
    """Few digits, thousands as k, a true minus sign. All ticks of an axis are written in one way, that of its largest.

    >>> _tick_text(12000), _tick_text(-0.25), _tick_text(1e-05)
    ('12k', '−0.25', '1e−5')
    >>> _tick_text(0.00095, largest=0.001)
    '0.00095'
    """
    largest = abs(value) if largest is None else largest
    if value == 0:
        return "0"
    if largest >= 1e6 or largest < 1e-3:
        mantissa, exponent = f"{value:.3g}".split("e") if "e" in f"{value:.3g}" else f"{value:.2e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    if largest >= 10_000:
        return f"{value / 1000:g}k".replace("-", "−")
    return f"{round(value, 6):g}".replace("-", "−")


# --- Words ------------------------------------------------------------------------------------------------------------


def _facts(lines):
    """What was run, how far it came, and how it ended."""
    start = next((line for line in lines if line["kind"] == "start"), {})
    end = next((line for line in reversed(lines) if line["kind"] == "end"), None)
    epochs = [line for line in lines if line["kind"] == "epoch"]
    steps = [line["step"] for line in lines if "step" in line]
    facts = []
    if start.get("model") is not None:
        facts.append(("model", f"{start['model']}, {start.get('parameters') or 0:,} parameters"))
    facts += [(key, start[key]) for key in ("optimizer", "device", "seed") if start.get(key) is not None]
    planned = start.get("epochs")
    facts.append(("epochs", f"{epochs[-1]['epoch'] if epochs else 0} of {'?' if planned is None else planned}"))
    if steps:
        facts.append(("steps", f"{max(steps):,}"))
    if end and number(end.get("best")) is not None:
        facts.append(
            (
                f"best {start.get('monitor') or ''}".strip(),
                f"{short(number(end['best']))} in epoch {end.get('best_epoch', '?')}",
            )
        )
    times = [time for line in lines if (time := number(line.get("time"))) is not None and abs(time) < 1e15]
    if times:
        facts.append(("time", duration(times[-1] - times[0])))
    if resumed := sum(line["kind"] == "resume" for line in lines):
        facts.append(("resumed", f"{resumed} times" if resumed > 1 else "once"))
    facts.append(("ended", end["reason"] if end else "not yet, or without a word"))
    return (
        "<dl>" + "".join(f"<div><dt>{_text(key)}</dt><dd>{_text(value)}</dd></div>" for key, value in facts) + "</dl>"
    )


def _table(lines):
    """The numbers of each epoch."""
    epochs = [line for line in lines if line["kind"] == "epoch"]
    if not epochs:
        return ""
    names = list(
        dict.fromkeys(key for line in epochs for key in line if key not in NOT_CURVES and number(line[key]) is not None)
    )[:MAX_NAMES]
    epochs = epochs[-(MAX_CELLS // (1 + len(names))) :]
    head = "".join(f"<th>{_text(name, 100)}</th>" for name in ["epoch", *names])
    rows = "".join(
        f"<tr><td>{line['epoch']}</td>"
        + "".join(f"<td>{short(number(line[n])) if n in line else ''}</td>" for n in names)
        + "</tr>"
        for line in epochs
    )
    return (
        f"<details{' open' if len(epochs) <= 20 else ''}><summary>Epochs</summary><div "
        f'class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


STYLE = """
:root{color-scheme:light dark;--paper:#fcfcfb;--card:#fff;--ink:#1b1b1a;--soft:#62625e;--line:#e4e3de;
  --train:#2a78d6;--validation:#d9541e}
@media(prefers-color-scheme:dark){:root{--paper:#161615;--card:#1e1e1d;--ink:#ecebe7;--soft:#a09f99;--line:#363634;--train:#5b9cec;--validation:#f0804f}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:28px 24px;background:var(--paper);color:var(--ink);
  font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 12px}
dl{display:flex;flex-wrap:wrap;gap:8px 28px;margin:0 0 22px}
dt{color:var(--soft);font-size:12px}
dd{margin:0;font-variant-numeric:tabular-nums}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(480px,100%),1fr));gap:18px}
figure{margin:0;padding:14px 14px 8px;background:var(--card);border:1px solid var(--line);border-radius:8px}
figcaption{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline;font-weight:600;margin-bottom:6px}
.note{color:var(--soft);font-weight:400;font-size:12px}
.legend{margin-left:auto;display:flex;gap:14px;font-weight:400;font-size:13px}
.key{display:flex;align-items:center;gap:6px}
.key i{width:16px;height:3px;border-radius:2px;background:currentColor}
svg{display:block;width:100%;height:auto}
.train{color:var(--train)}
.validation{color:var(--validation)}
.faint{opacity:.4}
polyline{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
polyline.faint{stroke-width:1.2}
circle{fill:currentColor;stroke:var(--card);stroke-width:1.5}
.grid{stroke:var(--line);stroke-width:1}
.axis{stroke:var(--soft);stroke-width:1}
.tick{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}
details{margin-top:22px}
summary{cursor:pointer;font-weight:600;margin-bottom:8px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:4px 16px 4px 0;text-align:right;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:500;font-size:13px}
"""
