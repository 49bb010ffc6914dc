"""torch.utils.benchmark: how long a statement takes, with its spread, and tables that compare several."""

import contextlib
import dataclasses
import enum
import statistics
import textwrap
import time
import timeit

import cresset

timer = time.perf_counter
UNITS = ((1e-9, "ns", "nanosecond"), (1e-6, "us", "microsecond"), (1e-3, "ms", "millisecond"), (1.0, "s", "second"))


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


def select_unit(t):
    """The unit that suits a time in seconds, and its size.

    >>> cresset.utils.benchmark.select_unit(2e-5)
    ('us', 1e-06)
    """
    size, name, _ = next((unit for unit in reversed(UNITS) if t >= unit[0]), UNITS[0])
    return name, size


def unit_to_english(u):
    """The word for a unit of time: 'us' is 'microsecond'."""
    return next(english for _, name, english in UNITS if name == u)


@contextlib.contextmanager
def set_torch_threads(n):
    """Use n threads inside."""
    before = cresset.get_num_threads()
    try:
        cresset.set_num_threads(n)
        yield
    finally:
        cresset.set_num_threads(before)


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self):
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part for part in parts if part)


class Measurement:
    """The times of one statement: raw times of `number_per_run` runs each, and what follows from them."""

    def __init__(self, number_per_run, raw_times, task_spec, metadata=None):
        self.number_per_run, self.raw_times, self.task_spec, self.metadata = (
            number_per_run,
            raw_times,
            task_spec,
            metadata,
        )

    def __getattr__(self, name):
        spec = self.__dict__.get("task_spec")
        if spec is None or name not in {field.name for field in dataclasses.fields(TaskSpec)} | {"title"}:
            raise AttributeError(f"'Measurement' object has no attribute {name!r}")
        return getattr(spec, name)

    @property
    def times(self):
        """Seconds of one run, one number a measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def mean(self):
        return statistics.fmean(self.times)

    def _quartile(self, share):
        times = sorted(self.times)
        place = share * (len(times) - 1)
        low = int(place)
        return times[low] + (times[min(low + 1, len(times) - 1)] - times[low]) * (place - low)

    @property
    def iqr(self):
        """The range of the middle half of the times."""
        return self._quartile(0.75) - self._quartile(0.25)

    @property
    def significant_figures(self):
        """How many figures of the median the spread leaves trustworthy."""
        from math import floor, log10, sqrt

        interval = (
            self.iqr / 1.35 / sqrt(len(self.times)) * 1.645
        )  # the 90 % interval of a normal distribution's median
        if interval <= 0 or self.median <= 0:
            return 4
        return max(1, min(4, floor(log10(self.median)) - floor(log10(interval))))

    @property
    def has_warnings(self):
        return bool(self._warning())

    def meets_confidence(self, threshold=0.1):
        """Whether the middle half lies within `threshold` of the median."""
        return self.iqr / self.median < threshold

    @property
    def as_row_name(self):
        return self.sub_label or self.stmt or "[Unknown]"

    def _warning(self):
        if len(self.times) < 2 or self.median == 0 or self.iqr / self.median <= 0.1:
            return ""
        strong = self.iqr / self.median > 0.25
        said = (
            "This suggests significant environmental influence."
            if strong
            else "This could indicate system fluctuation."
        )
        return (
            f"  WARNING: Interquartile range is {100 * self.iqr / self.median:.1f}% of the median measurement.\n  "
            f"         {said}"
        )

    def __repr__(self):
        unit, size = select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        if len(self.times) > 1:
            lines.append(f"  Median: {self.median / size:.2f} {unit}")
            if len(self.times) > 3:
                lines.append(
                    f"  IQR:    {self.iqr / size:.2f} {unit} ({self._quartile(0.25) / size:.2f} to "
                    f"{self._quartile(0.75) / size:.2f})"
                )
        else:
            lines.append(f"  {self.median / size:.2f} {unit}")
        many = len(self.times) > 1
        runs = (
            f"{self.number_per_run} run{'s' if self.number_per_run > 1 else ''}{' per measurement,' if many else ','}"
        )
        lines.append(
            f"  {len(self.times)} measurement{'s' if many else ''}, {runs} {self.num_threads} "
            f"thread{'s' if self.num_threads > 1 else ''}"
        )
        return "\n".join(line for line in [*lines, self._warning()] if line)

    @staticmethod
    def merge(measurements):
        """Join the times of measurements of the same task and number of runs."""
        groups = {}
        for one in measurements:
            groups.setdefault((one.task_spec, one.number_per_run), []).append(one)
        return [
            Measurement(number, [t for one in group for t in one.raw_times], spec)
            for (spec, number), group in groups.items()
        ]


class Timer:
    """Measure a statement given as text, with `setup` before it and `globals` for its names (torch is there).

    >>> measured = cresset.utils.benchmark.Timer("x + 1", globals={"x": cresset.ones(2)}).timeit(10)
    >>> measured.number_per_run
    10
    """

    def __init__(
        self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None, sub_label=None,
        description=None, env=None, num_threads=1,
        language=Language.PYTHON,
    ):  # fmt: skip
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(
                f"Timer: statements of C++ cannot be measured; language should be Language.PYTHON, got {language!r}"
            )
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if global_setup:
            raise AssertionError("Timer: global_setup is for C++; put it into setup")
        self._globals = dict(globals or {})
        self._globals.setdefault("torch", cresset)
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip() or "pass"
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _time(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1000000):
        """Run the statement `number` times, after a few to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def repeat(self, repeat=-1, number=-1):
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time):
        """So many runs that reading the clock costs less than a thousandth of them."""
        overhead = min(timeit.Timer("pass", timer=self._timer.timer).timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._time(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000 or taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measure blocks of runs until `min_run_time` seconds have passed: many measurements, little overhead of the
        clock.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number, times = self._block_size(min_run_time), []
            while sum(times) < min_run_time or not times:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Measure until the middle half of the times lies within `threshold` of the median, or max_run_time is over."""
        with set_torch_threads(self._task_spec.num_threads):
            number, times = self._block_size(0.05), []
            while sum(times) < max_run_time:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                if (
                    len(times) > 3
                    and sum(times) >= min_run_time
                    and Measurement(number, times, self._task_spec).meets_confidence(threshold)
                ):
                    break
        return Measurement(number, times, self._task_spec)


class Colorize(enum.Enum):
    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: a block a label, a row a sub_label and environment, a column a description."""

    def __init__(self, results):
        self._results = list(results)
        self._trim, self._colors, self._warn = False, Colorize.NONE, False

    def extend_results(self, results):
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show only figures that the spread leaves trustworthy."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Show the fastest green and what is far slower red, by column or by row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Mark measurements with a wide spread by (!)."""
        self._warn = True

    def print(self):
        print(str(self))

    def _cell(self, one, size):
        value = one.median / size
        if self._trim and value > 0:
            value = float(f"{value:.{one.significant_figures}g}")
        return f"{value:.1f}" + (" (!)" if self._warn and one.has_warnings else "")

    def __str__(self):
        merged, blocks = Measurement.merge(self._results), {}
        for one in merged:
            blocks.setdefault(one.label or one.stmt, []).append(one)
        return "\n\n".join(self._block(label, results) for label, results in blocks.items())

    def _block(self, label, results):
        unit, size = select_unit(min(one.median for one in results))
        columns = list(dict.fromkeys(one.description or "" for one in results))
        table = {}
        for one in results:
            name = (f"({one.env})  " if one.env else "") + one.as_row_name
            table.setdefault(one.num_threads, {}).setdefault(name, {})[one.description or ""] = one
        widest = max(len(name) for rows in table.values() for name in rows) + 6
        cells = {id(one): self._cell(one, size) for one in results}
        widths = [
            max(len(column), *(len(cells[id(one)]) for one in results if (one.description or "") == column))
            for column in columns
        ]
        head = " " * widest + "  |  " + "  |  ".join(column.center(width) for column, width in zip(columns, widths))
        lines = [f" {label} ".center(len(head) - 2, "-").join("[]"), head]
        for threads, rows in sorted(table.items()):
            lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            for name, row in rows.items():
                texts = []
                for column, width in zip(columns, widths):
                    one = row.get(column)
                    text = (cells[id(one)] if one else "").rjust(width)
                    rivals = (
                        row.values()
                        if self._colors is Colorize.ROWWISE
                        else [r[column] for r in rows.values() if column in r]
                    )
                    texts.append(_colored(text, one, rivals) if one and self._colors is not Colorize.NONE else text)
                lines.append(" " * 6 + name.ljust(widest - 6) + "  |  " + "  |  ".join(texts))
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit})."])


def _colored(text, one, rivals):
    slower = one.median / min(rival.median for rival in rivals)
    code = "92" if slower <= 1.05 else "91" if slower > 2 else None
    return f"\033[{code}m{text}\033[0m" if code else text
