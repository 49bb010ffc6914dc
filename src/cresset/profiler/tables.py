"""Events as a table of text, with PyTorch's columns."""

SORT_KEYS = {
    "cpu_time", "cuda_time", "xpu_time", "device_time", "cpu_time_total", "cuda_time_total", "xpu_time_total",
    "device_time_total", "self_cpu_time_total",
    "self_cuda_time_total", "self_xpu_time_total", "self_device_time_total", "cpu_memory_usage", "cuda_memory_usage",
    "xpu_memory_usage", "device_memory_usage",
    "self_cpu_memory_usage", "self_cuda_memory_usage", "self_xpu_memory_usage", "self_device_memory_usage", "count",
}  # fmt: skip

SOURCES = 5  # lines of Python in a row

UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_time(microseconds, unit=None):
    """Microseconds as text, in the unit that suits them or in `unit`: s, ms or us.

    >>> cresset.profiler.tables.format_time(1234.5)
    '1.234ms'
    """
    unit = unit or ("s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us")
    return f"{microseconds / UNITS[unit]:.3f}{unit}"


def format_share(part, whole):
    if whole == 0:
        return "NaN" if part else "0.00%"
    return f"{100 * part / whole:.2f}%"


def format_memory(count):
    for size, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def cut(text, width):
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


def flops_unit(largest):
    """The name of FLOPs of this size, and what to divide by."""
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "K")):
        if largest >= 10**power:
            return f"Total {prefix}FLOPs", 10**power
    return "Total FLOPs", 1


def build(
    events, sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
    top_level_events_only, time_unit, memory, flops, device,
):  # fmt: skip
    """The table; see EventList.table."""
    if len(events) == 0:
        return ""
    if time_unit is not None and time_unit not in UNITS:
        raise ValueError(f"table: time_unit should be one of {list(UNITS)}, got {time_unit!r}")
    if sort_by is not None and sort_by not in SORT_KEYS:
        raise ValueError(f"table: cannot sort by {sort_by!r}; the keys are {', '.join(sorted(SORT_KEYS))}")
    total = events.self_cpu_time_total
    ordered = events
    if sort_by is not None:
        by = sort_by.replace("cuda", "device").replace("xpu", "device")
        ordered = sorted(events, key=lambda event: getattr(event, by), reverse=True)
    shown = [event for event in ordered if not (top_level_events_only and event.cpu_parent is not None)]
    shown = shown[:row_limit] if row_limit >= 0 else shown
    largest = max((event.flops or 0 for event in events), default=0)
    flops_title, flops_scale = flops_unit(largest)

    columns = [("Name", lambda e: cut(e.key, max_name_column_width))]
    columns += [
        ("Self CPU %", lambda e: format_share(e.self_cpu_time_total, total)),
        ("Self CPU", lambda e: format_time(e.self_cpu_time_total, time_unit)),
        ("CPU total %", lambda e: format_share(e.cpu_time_total, total)),
        ("CPU total", lambda e: format_time(e.cpu_time_total, time_unit)),
        ("CPU time avg", lambda e: format_time(e.cpu_time, time_unit)),
    ]
    if device:
        name = device.upper()
        on_device = events.self_device_time_total
        columns += [
            (f"Self {name}", lambda e: format_time(e.self_device_time_total, time_unit)),
            (f"Self {name} %", lambda e: format_share(e.self_device_time_total, on_device)),
            (f"{name} total", lambda e: format_time(e.device_time_total, time_unit)),
            (f"{name} time avg", lambda e: format_time(e.device_time, time_unit)),
        ]
    if memory:
        columns += [
            ("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
        ]
        if device:
            columns += [
                (f"{device.upper()} Mem", lambda e: format_memory(e.device_memory_usage)),
                (f"Self {device.upper()} Mem", lambda e: format_memory(e.self_device_memory_usage)),
            ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if any(event.input_shapes for event in events):
        columns.append(("Input Shapes", lambda e: cut(str(e.input_shapes), max_shapes_column_width)))
    if any(event.stack for event in events):
        columns.append(("Source Location", lambda e: [cut(line, max_src_column_width) for line in e.stack[:SOURCES]]))
    if flops:
        columns.append((flops_title, lambda e: f"{e.flops / flops_scale:.3f}" if e.flops else "--"))

    rows = []
    for event in shown:
        cells = [text(event) for _, text in columns]
        sources = next((cell for cell in cells if isinstance(cell, list)), [])
        rows.append([(cell[0] if cell else "") if isinstance(cell, list) else cell for cell in cells])
        for more in sources[1:]:  # the callers, below
            rows.append([more if isinstance(cell, list) else "" for cell in cells])
    widths = []
    for i, (title, _) in enumerate(columns):
        least = 12 if title not in ("Name", "Input Shapes", "Source Location") else 0
        widths.append(max(least, len(title), *(len(row[i]) for row in rows)) if rows else max(least, len(title)))
    rule = "  ".join("-" * width for width in widths) + "  "
    lefts = [title == "Source Location" for title, _ in columns]

    def line(cells):
        return (
            "  ".join(c.ljust(w) if left else c.rjust(w) for c, w, left in zip(cells, widths, lefts, strict=True))
            + "  "
        )

    lines = []
    if header is not None:
        lines += ["=" * len(rule), header]
    lines += [rule, line([title for title, _ in columns]), rule]
    lines += [line(row) for row in rows]
    lines += [rule, f"Self CPU time total: {format_time(total, time_unit)}"]
    if device:
        lines.append(f"Self {device.upper()} time total: {format_time(on_device, time_unit)}")
    return "\n".join(lines) + "\n"
