"""A page with memory over time, by holder: the line that asked for it, and what it was for. It needs nothing from
elsewhere; without scripts only the details under the pointer are missing."""

import html
import json
import linecache
import os
from collections import Counter

WIDTH, HEIGHT = 1160, 420
LEFT, RIGHT, TOP, BOTTOM = 78, 16, 16, 42
MOST_COLUMNS = 700  # of a chart; where there are more events, a column shows the highest of several
MOST_HOLDERS = 11  # with a color of their own
TABLE_ROWS = 40
# Holders whose line is not known.
BEFORE, UNKNOWN = ("", "", 0, "before recording"), ("", "", 0, "outside of Python")


class Timeline:
    """What was recorded: events in order, and what was held before the first of them.

    Args:
        events: (nanoseconds, bytes, holder): bytes are negative where memory was freed. A holder is (module or what it
            is for, file, line, function).
        before: bytes by holder.
        reserved: (nanoseconds, number of events before, bytes) that an allocator took from the device.
        reserved_before: bytes.
        failures: (nanoseconds, number of events before, bytes) that could not be had.
    """

    def __init__(self, events, before, reserved=(), reserved_before=0, failures=()):
        self.events, self.before, self.reserved, self.failures = events, Counter(before), reserved, failures
        self.reserved_before = reserved_before
        times = [event[0] for event in self.events] or [event[0] for event in self.reserved] or [0]
        self.start, self.end = times[0], times[-1]
        self._find_peak()

    def _find_peak(self):
        held, blocks = Counter(self.before), Counter()
        total = self.peak = sum(held.values())
        self.at_peak, self.blocks_at_peak, self.peak_place, self.most = Counter(held), Counter(), -1, Counter(held)
        dirty = None
        for place, (_, size, holder) in enumerate(self.events):
            if dirty is not None and size < 0:  # the top of a rise: what is held is copied once
                self.at_peak, self.blocks_at_peak, self.peak_place, dirty = Counter(held), Counter(blocks), dirty, None
            held[holder] += size
            blocks[holder] += 1 if size > 0 else -1
            total += size
            if held[holder] > self.most[holder]:
                self.most[holder] = held[holder]
            if total > self.peak:
                self.peak, dirty = total, place
        if dirty is not None:
            self.at_peak, self.blocks_at_peak, self.peak_place = Counter(held), Counter(blocks), dirty
        self.at_end = Counter(held)

    @property
    def has_reserved(self):
        """Whether it is known what an allocator took from the device."""
        return bool(self.reserved or self.reserved_before)

    def holders(self):
        """All holders, the largest at the peak first, then by the most that each held."""
        return sorted(self.most, key=lambda holder: (-self.at_peak[holder], -self.most[holder], holder))

    def columns(self, by_time):
        """The chart's columns, each (start, nanoseconds, reserved, {holder: bytes}) at its highest moment; start is a
        time or an event's number.
        """
        count = len(self.events)
        span = max(self.end - self.start, 1)
        held, total, reserved, spent = Counter(self.before), sum(self.before.values()), self.reserved_before, 0
        columns = [[0, self.start, total, reserved, dict(held)]]
        last = -1
        for place, (time, size, holder) in enumerate(self.events):
            while spent < len(self.reserved) and self.reserved[spent][1] <= place:
                reserved += self.reserved[spent][2]
                spent += 1
            held[holder] += size
            total += size
            slot = (
                (time - self.start) * MOST_COLUMNS // span
                if by_time
                else place * MOST_COLUMNS // max(count, MOST_COLUMNS)
            )
            if slot != last or total > columns[-1][2]:
                made = [
                    time - self.start if by_time else place + 1,
                    time,
                    total,
                    reserved,
                    {name: n for name, n in held.items() if n},
                ]
                if slot != last:
                    columns.append(made)
                else:
                    columns[-1][1:] = made[1:]
            last = slot
        # What is left after a column's highest moment: the next one, or the end, shows it.
        columns.append(
            [
                span if by_time else max(count, 1) + 1,
                self.end,
                total,
                reserved,
                {name: n for name, n in held.items() if n},
            ]
        )
        return columns


def size_text(count):
    """Bytes with a unit, three or four digits."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} B" if unit == "B" else f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def time_text(nanoseconds):
    for unit, length in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= length:
            return f"{nanoseconds / length:.3g} {unit}"
    return f"{nanoseconds} ns"


def place_text(holder):
    _, file, line, name = holder
    return f"{os.path.basename(file)}:{line}" if file else name


def name_text(holder):
    """One line for a legend: the module and the place."""
    module = holder[0]
    return f"{module} · {place_text(holder)}" if module else place_text(holder)


class Layers:
    """The colors of a chart, from the bottom up: `number(holder)` and `names`.

    By default each of the largest holders has a color, and the others share one.
    """

    title, kind = "Allocated memory by holder", "module"

    def __init__(self, found):
        holders = found.holders()
        colored = holders[:MOST_HOLDERS] if len(holders) > MOST_HOLDERS + 1 else holders
        colored = sorted(colored, key=lambda holder: holder != BEFORE)  # what was always there lies at the bottom
        rest = len(holders) - len(colored)
        self.numbers = {holder: number for number, holder in enumerate(colored)}
        self.names = [name_text(holder) for holder in colored] + ([f"{rest} other holders"] if rest else [])

    def number(self, holder):
        return self.numbers.get(holder, len(self.names) - 1)


def page(found, title, device, truncated=False, layers=None):
    """The page as text; `layers` are the colors (see Layers)."""
    layers = layers or Layers(found)
    charts, data = [], {}
    for key, by_time in (("events", False), ("time", True)):
        columns = found.columns(by_time)
        rows = [_row(column[4], layers) for column in columns]
        svg, xs = _chart(found, columns, rows, by_time)
        charts.append(f'<div class="chart" id="by-{key}" data-key="{key}">{svg}</div>')
        data[key] = {
            "x": xs,
            "text": [_moment(found, column, by_time) for column in columns],
            "total": [column[2] for column in columns],
            "by": rows,
        }
        if found.has_reserved:
            data[key]["reserved"] = [column[3] for column in columns]
    data["names"] = layers.names
    used = {number for key in ("events", "time") for row in data[key]["by"] for number, size in enumerate(row) if size}
    legend = "".join(
        f'<span class="key"><i class="c{number}"></i>{html.escape(text)}</span>'
        for number, text in enumerate(layers.names)
        if number in used
    )
    if found.has_reserved:
        legend += '<span class="key"><i class="reserved"></i>reserved by the allocator</span>'
    note = (
        (
            '<p class="note">The history was full: what was allocated earlier than the first event kept is counted '
            "with "
            "its holder where that is known.</p>"
        )
        if truncated
        else ""
    )
    body = (
        f"<h1>{html.escape(title)}</h1>{_facts(found, device)}{note}"
        '<figure><input type="radio" name="axis" id="axis-events" checked><input type="radio" name="axis" '
        'id="axis-time">'
        f'<div class="bar"><b>{html.escape(layers.title)}</b><span class="switch"><label for="axis-events">by '
        'event</label><label for="axis-time">by time</label></span></div>'
        f'{"".join(charts)}<div class="legend">{legend}</div><div id="tip" hidden></div></figure>'
        f"<h2>Held at the peak</h2>{_table(found, layers)}"
    )
    script = SCRIPT.replace("DATA", json.dumps(data, separators=(",", ":")).replace("</", "<\\/"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>{body}<script>{script}</script></body></html>\n"
    )


def _row(held, layers):
    """Bytes of each layer."""
    row = [0] * len(layers.names)
    for holder, size in held.items():
        row[layers.number(holder)] += size
    return row


def _moment(found, column, by_time):
    time = time_text(column[1] - found.start)
    return f"after {time}" if by_time else f"event {column[0]} of {len(found.events)}, after {time}"


def _nice_steps(top):
    """Round sizes from 0 up to `top`, four to eight of them."""
    step = 1
    while top / step > 8:
        step *= 2
    return [step * number for number in range(int(top // step) + 1)]


def _round_numbers(top):
    """Round numbers from 0 up to `top`, four to ten of them."""
    step = 1
    while top / step > 10:
        step *= 2 if str(step)[0] in "15" else 2.5
        step = int(step)
    return range(0, top + 1, step)


def _chart(found, columns, rows, by_time):
    """The stacked steps as SVG, and where each column begins."""
    top = max(max(column[2] for column in columns), max(column[3] for column in columns), 1) * 1.04
    last = max(columns[-1][0], 1)
    xs = [round(LEFT + (WIDTH - LEFT - RIGHT) * column[0] / last, 1) for column in columns]

    def up(size):
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * size / top, 1)

    parts = []
    for size in _nice_steps(top):
        parts.append(
            f'<path class="grid" d="M{LEFT} {up(size)}H{WIDTH - RIGHT}"/><text class="tick" x="{LEFT - 8}" '
            f'y="{up(size) + 4:.1f}" text-anchor="end">{size_text(size)}</text>'
        )
    base = [0] * len(columns)
    for number in range(len(rows[0]) if rows else 0):
        above = [low + row[number] for low, row in zip(base, rows, strict=True)]
        if any(row[number] for row in rows):
            parts.append(f'<path class="area c{number}" d="{_steps(xs, above, base, up)}"/>')
        base = above
    if found.has_reserved:
        line = "".join(
            f"{'M' if not place else 'H'}{x}{' ' if not place else 'V'}{up(column[3])}"
            for place, (x, column) in enumerate(zip(xs, columns, strict=True))
        )
        parts.append(f'<path class="reserved-line" d="{line}"/>')
    peak = max(range(len(columns)), key=lambda place: columns[place][2])
    anchor, shift = ("end", -6) if xs[peak] > WIDTH * 0.75 else ("start", 6)
    parts.append(
        f'<path class="peak" d="M{xs[peak]} {up(columns[peak][2])}V{HEIGHT - BOTTOM}"/>'
        f'<text class="label" x="{xs[peak] + shift}" y="{max(up(columns[peak][2]) - 6, 12):.1f}" '
        f'text-anchor="{anchor}">peak {size_text(columns[peak][2])}</text>'
    )
    for time, place, size in found.failures:
        x = round(LEFT + (WIDTH - LEFT - RIGHT) * min(time - found.start if by_time else place, last) / last, 1)
        anchor, shift = ("end", -4) if x > WIDTH * 0.75 else ("start", 4)
        parts.append(
            f'<path class="failure" d="M{x} {TOP}V{HEIGHT - BOTTOM}"/><text class="failed" x="{x + shift}" '
            f'y="{TOP + 12}" text-anchor="{anchor}">out of memory: {size_text(size)}</text>'
        )
    for tick in _round_numbers(last):
        x = LEFT + (WIDTH - LEFT - RIGHT) * tick / last
        text = time_text(tick) if by_time and tick else f"{tick:,}"
        parts.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{text}</text>')
    axis = "time since the first event" if by_time else "allocations and frees, in order"
    parts.append(
        f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/><text class="tick" '
        f'x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{axis}</text>'
    )
    parts.append(f'<path class="cursor" d="M0 {TOP}V{HEIGHT - BOTTOM}" visibility="hidden"/>')
    label = html.escape(f"Allocated memory, at most {size_text(found.peak)}", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>', xs


def _steps(xs, above, base, up):
    """The outline between two staircases."""
    there = [f"M{xs[0]} {up(base[0])}V{up(above[0])}"]
    for place in range(1, len(xs)):
        there.append(f"H{xs[place]}" + (f"V{up(above[place])}" if above[place] != above[place - 1] else ""))
    back = [f"V{up(base[-1])}"]
    for place in range(len(xs) - 1, 0, -1):
        back.append(f"H{xs[place]}V{up(base[place - 1])}" if base[place - 1] != base[place] else "")
    return "".join([*there, *back, "Z"])


def _facts(found, device):
    allocations = sum(size > 0 for _, size, _ in found.events)
    reserved = peak = found.reserved_before
    for _, _, size in found.reserved:
        reserved += size
        peak = max(peak, reserved)
    when = time_text(found.events[found.peak_place][0] - found.start) if found.peak_place >= 0 else "the start"
    facts = [
        ("device", device), ("peak", size_text(found.peak)), ("reached after", when),
        ("held at the end", size_text(sum(found.at_end.values()))),
        *([("most reserved", size_text(peak))] if found.has_reserved else []), ("allocations", f"{allocations:,}"),
        ("frees", f"{len(found.events) - allocations:,}"),
        ("recorded", time_text(found.end - found.start)),
    ]  # fmt: skip
    if found.failures:
        facts.append(("out of memory", f"{len(found.failures)} times" if len(found.failures) > 1 else "once"))
    return (
        "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{html.escape(value)}</dd></div>" for name, value in facts) + "</dl>"
    )


def _table(found, layers):
    """The largest holders at the peak, with the text of their lines."""
    holders, rows = found.holders(), []
    for holder in [holder for holder in holders if found.at_peak[holder]][:TABLE_ROWS]:
        module, file, line, function = holder
        size, blocks = found.at_peak[holder], found.blocks_at_peak[holder]
        number = layers.number(holder)
        code = linecache.getline(file, line).strip() if file else ""
        where = f'<span title="{html.escape(file, quote=True)}">{html.escape(place_text(holder))}</span>' + (
            f" in {html.escape(function)}" if file else ""
        )
        rows.append(
            f'<tr><td><i class="c{number}"></i></td><td class="number">{size_text(size)}</td><td '
            f'class="number">{100 * size / max(found.peak, 1):.1f} %</td>'
            f'<td class="number">{blocks if blocks > 0 else ""}</td><td '
            f'class="number">{size_text(found.at_end[holder])}</td>'
            f"<td>{html.escape(module) or '<span class=soft>none</span>'}</td>"
            f"<td>{where}{f'<code>{html.escape(code)}</code>' if code else ''}</td></tr>"
        )
    left = sum(1 for holder in holders if found.at_peak[holder]) - len(rows)
    more = f'<p class="note">{left} smaller holders are not listed.</p>' if left > 0 else ""
    if not rows:
        return '<p class="note">Nothing was held.</p>'
    head = (
        "<tr><th></th><th>at the peak</th><th>share</th><th>blocks</th><th>at the end</th><th "
        f"class=left>{layers.kind}</th><th class=left>line</th></tr>"
    )
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>{more}'


LIGHT = [
    "#2a78d6",
    "#e8862e",
    "#3a9d5d",
    "#c8463f",
    "#8a63c9",
    "#97684a",
    "#d76cae",
    "#6b8f1a",
    "#1ba3b5",
    "#c9a613",
    "#4c56a8",
    "#9b9b96",
]
DARK = [
    "#5b9cec",
    "#f0a050",
    "#5fbd80",
    "#e8716a",
    "#ab8be0",
    "#b98a6c",
    "#e793c8",
    "#a5c253",
    "#4fc4d4",
    "#e0c34a",
    "#8289d6",
    "#7d7d78",
]

STYLE = (
    (
        ":root{color-scheme:light "
        "dark;--paper:#fcfcfb;--card:#fff;--ink:#1b1b1a;--soft:#62625e;--line:#e4e3de;--bad:#c0281f;"
    )
    + "".join(f"--c{number}:{color};" for number, color in enumerate(LIGHT))
    + "}@media(prefers-color-scheme:dark){:root{--paper:#161615;--card:#1e1e1d;"
    + "--ink:#ecebe7;--soft:#a09f99;--line:#363634;--bad:#ff7a70;"
    + "".join(f"--c{number}:{color};" for number, color in enumerate(DARK))
    + "}}"
    + "".join(f".c{number}{{color:var(--c{number})}}" for number in range(len(LIGHT)))
    + """
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:28px 24px;background:var(--paper);
  color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 12px}
h2{font-size:18px;margin:26px 0 8px}
dl{display:flex;flex-wrap:wrap;gap:8px 28px;margin:0 0 20px}
dt{color:var(--soft);font-size:12px}
dd{margin:0;font-variant-numeric:tabular-nums}
figure{position:relative;margin:0;padding:14px 14px 12px;background:var(--card);
  border:1px solid var(--line);border-radius:8px}
figure>input{position:absolute;opacity:0;pointer-events:none}
.bar{display:flex;justify-content:space-between;margin-bottom:6px}
.switch{display:flex;border:1px solid var(--line);border-radius:6px;overflow:hidden;font-size:13px}
.switch label{padding:2px 12px;color:var(--soft);cursor:pointer}
#axis-events:checked~.bar label[for=axis-events],#axis-time:checked~.bar label[for=axis-time]{
  background:var(--line);color:var(--ink)}
#axis-events:focus-visible~.bar .switch,#axis-time:focus-visible~.bar .switch{outline:2px solid var(--c0)}
#axis-events:checked~#by-time,#axis-time:checked~#by-events{display:none}
svg{display:block;width:100%;height:auto}
.area{fill:currentColor;stroke:var(--card);stroke-width:.4}
.reserved-line{fill:none;stroke:var(--soft);stroke-width:1.2;stroke-dasharray:5 4}
.grid{stroke:var(--line)}
.axis{stroke:var(--soft)}
.peak{stroke:var(--ink);stroke-dasharray:2 3}
.label{fill:var(--ink);font-size:13px;font-weight:600;paint-order:stroke;stroke:var(--card);stroke-width:3px}
.failure{stroke:var(--bad);stroke-width:1.5}
.failed{fill:var(--bad);font-size:12px;font-weight:600;paint-order:stroke;stroke:var(--card);stroke-width:3px}
.cursor{stroke:var(--ink);stroke-width:1}
.tick{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin-top:8px;font-size:13px}
.key{display:flex;align-items:center;gap:6px}
i{flex:none;display:inline-block;width:12px;height:12px;border-radius:3px;background:currentColor}
i.reserved{width:22px;height:0;border-radius:0;background:none;border-top:2px dashed var(--soft)}
#tip{position:absolute;z-index:2;min-width:230px;max-width:460px;padding:8px 10px;
  background:var(--card);border:1px solid var(--line);border-radius:6px;
  box-shadow:0 3px 14px #0003;font-size:13px;pointer-events:none}
#tip p{display:flex;gap:8px;align-items:center;margin:1px 0}
#tip p span:last-child{margin-left:auto;padding-left:14px;white-space:nowrap;font-variant-numeric:tabular-nums}
#tip .total{font-weight:600}
.note,.soft{color:var(--soft);font-size:13px}
.soft{white-space:nowrap}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:5px 16px 5px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:500;font-size:13px}
th:not(.left),.number{text-align:right;white-space:nowrap}
td i{margin-top:5px}
code{display:block;color:var(--soft);font:12px/1.4 ui-monospace,monospace}
"""
)

SCRIPT = """
const data=DATA,tip=document.getElementById("tip"),figure=tip.parentNode;
function size(n){const u=["B","KiB","MiB","GiB","TiB"];let i=0;while(Math.abs(n)>=1024&&i<4){n/=1024;i++}
  return(i?n.toFixed(n>=100?0:n>=10?1:2):n)+" "+u[i]}
function line(color,name,value,kind){const p=document.createElement("p");if(kind)p.className=kind;
  if(color!==null){const i=document.createElement("i");i.className=color;p.append(i)}
for(const text of[name,value]){const s=document.createElement("span");s.textContent=text;p.append(s)}return p}
for(const chart of document.querySelectorAll(".chart")){
const svg=chart.querySelector("svg"),cursor=svg.querySelector(".cursor"),d=data[chart.dataset.key];
function show(event){const box=svg.getBoundingClientRect(),
  x=(event.clientX-box.left)*svg.viewBox.baseVal.width/box.width;
let low=0,high=d.x.length-1;while(low<high){const middle=low+high+1>>1;if(d.x[middle]<=x)low=middle;else high=middle-1}
cursor.setAttribute("transform","translate("+Math.max(x,d.x[0])+" 0)");cursor.setAttribute("visibility","visible");
const held=d.by[low].map((n,i)=>[n,i]).filter(h=>h[0]>0).sort((a,b)=>b[0]-a[0]);
tip.replaceChildren(line(null,d.text[low],"","soft"),line(null,"allocated",size(d.total[low]),"total"),...(d.reserved?[line(null,"reserved",size(d.reserved[low]))]:[]),...held.map(h=>line("c"+h[1],data.names[h[1]],size(h[0]))));
tip.hidden=false;const f=figure.getBoundingClientRect(),left=event.clientX-f.left;
tip.style.left=(left+18+tip.offsetWidth>f.width?Math.max(left-18-tip.offsetWidth,4):left+18)+"px";tip.style.top=(event.clientY-f.top+12)+"px"}
chart.addEventListener("pointermove",show);chart.addEventListener("pointerleave",()=>{tip.hidden=true;cursor.setAttribute("visibility","hidden")})}
"""
