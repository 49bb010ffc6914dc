"""What was recorded: one FunctionEvent a call, FunctionEventAvg for calls of one kind, and EventList, which sums them
up.
"""

import enum
from collections import defaultdict
from typing import NamedTuple

from . import flame, flops, stacks, tables


class DeviceType(enum.IntEnum):
    """Where an event ran, with PyTorch's numbers."""

    CPU = 0
    CUDA = 1
    XPU = 12
    MTIA = 19


class Interval:
    """Start and end of an event, in microseconds since the recording began."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class Kernel(NamedTuple):
    """What a call had a device do: a kernel, a copy or a fill; its duration is in microseconds."""

    name: str
    device: int
    duration: float


class _Times:
    """The times that follow from others, as numbers and text; what is of the device has CUDA's name too."""

    @property
    def cpu_time(self):
        return 0.0 if self.count == 0 else self.cpu_time_total / self.count

    @property
    def device_time(self):
        return 0.0 if self.count == 0 else self.device_time_total / self.count

    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)

    cpu_time_str = property(lambda self: tables.format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: tables.format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: tables.format_time(self.self_cpu_time_total))
    device_time_str = property(lambda self: tables.format_time(self.device_time))
    device_time_total_str = property(lambda self: tables.format_time(self.device_time_total))
    self_device_time_total_str = property(lambda self: tables.format_time(self.self_device_time_total))


class FunctionEvent(_Times):
    """One call of an operator, one node of a backward pass, one range of record_function, or (device_type CUDA) one
    kernel, copy or fill of a device.

    Its times are in microseconds, its memory in bytes. `cpu_children` are the events inside it, `cpu_parent` the one
    around it, `kernels` what it had a device do.
    """

    def __init__(
        self,
        id,
        name,
        thread,
        start_us,
        end_us,
        *,
        kind="operation",
        input_shapes=None,
        input_dtypes=None,
        result_shapes=None,
        stack=None,
        cpu_memory_usage=0,
        device_memory_usage=0,
        flops=None,
        device_type=DeviceType.CPU,
        device_index=-1,
        node_id=-1,
    ):
        self.id, self.name, self.trace_name, self.overload_name = id, name, name, ""
        self.kind = kind
        self.time_range = Interval(start_us, end_us)
        self.thread = self.fwd_thread = self.device_resource_id = thread  # of a device: the stream
        self.node_id, self.sequence_nr, self.scope = node_id, -1, {"range": 7, "node": 1}.get(kind, 0)
        self.count = 1
        self.kernels, self.cpu_children, self.cpu_parent = [], [], None
        self.input_shapes, self.input_dtypes, self.result_shapes = (
            input_shapes or [],
            input_dtypes or [],
            result_shapes or [],
        )
        self.stack = stack or []
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.activity = self.call = None  # of an event of a device: what the driver told of it and of its beginning
        self.linked_correlation_id = 0  # the operator that asked for it
        self.system_thread, self.stack_number = thread, -1
        self.is_async = self.is_remote = self.is_legacy = False
        self.device_type, self.device_index = device_type, device_index
        self.use_device = None if device_type is DeviceType.CPU else device_type.name.lower()
        self.flops = flops
        self.is_user_annotation = kind == "range"

    @property
    def key(self):
        return self.name

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0.0

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self):
        """The time of a device for this call and what it called."""
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self):
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        return sum((kernel.duration for kernel in self.kernels), 0.0)

    @property
    def self_cpu_memory_usage(self):
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self):
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    def append_kernel(self, name, device, duration):
        """Say that the call had a device do this."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        self.cpu_parent = parent

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type=DeviceType.{self.device_type.name} "
            f"cpu_time={self.cpu_time_str} device_time={self.device_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class FunctionEventAvg(_Times):
    """Calls with the same key, added up."""

    def __init__(self):
        self.key, self.count, self.input_shapes, self.stack = None, 0, None, None
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.flops, self.scope, self.overload_name = 0, 0, ""
        self.node_id = -1
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.device_type, self.use_device = DeviceType.CPU, None
        self.cpu_children, self.cpu_parent = None, None

    def add(self, other):
        """Add one call, or the calls of another average."""
        if self.key is None:
            self.key, self.input_shapes, self.stack = other.key, other.input_shapes, other.stack
            self.scope, self.device_type, self.use_device, self.is_user_annotation = (
                other.scope,
                other.device_type,
                other.use_device,
                other.is_user_annotation,
            )
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.device_time_total += other.device_time_total
        self.self_device_time_total += other.self_device_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.device_memory_usage += other.device_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} self_device_time={self.self_device_time_total_str} "
            f"device_time={self.device_time_str} count={self.count} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list):
    """Events, in the order in which they began; `key_averages` gives one with an entry per kind of call."""

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False, use_cuda=None):
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    @property
    def self_cpu_time_total(self):
        """The time of all events without what they contain, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    @property
    def self_device_time_total(self):
        """The time of all kernels, copies and fills of devices, in microseconds."""
        return sum(event.self_device_time_total for event in self if event.device_type is not DeviceType.CPU)

    self_cuda_time_total = property(lambda self: self.self_device_time_total)

    def _alike(self, events):
        return EventList(
            events, use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )

    def _populate_cpu_children(self):
        """Put each event inside the shortest one around it in its thread: for lists that a program has made."""
        by_thread = defaultdict(list)
        for event in self:
            if not event.is_async and event.device_type == DeviceType.CPU:
                by_thread[event.thread, event.node_id].append(event)
        for events in by_thread.values():
            around = []
            for event in sorted(events, key=lambda event: (event.time_range.start, -event.time_range.end)):
                while around and (
                    event.time_range.start >= around[-1].time_range.end
                    or event.time_range.end > around[-1].time_range.end
                ):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """Add up the calls with the same name (and the same input shapes, and the same innermost `group_by_stack_n`
        lines of Python).
        """
        groups = defaultdict(FunctionEventAvg)
        for event in self:
            key = (event.key, event.is_user_annotation, event.device_type)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple(event.stack[:group_by_stack_n])
            groups[key].add(event)
        for average in groups.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return self._alike(groups.values())

    def total_average(self):
        """Everything added up, as one FunctionEventAvg with the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
        max_shapes_column_width=80, header=None, top_level_events_only=False,
        time_unit=None,
    ):  # fmt: skip
        """The events as a table for people; `sort_by` is one of cpu_time, cpu_time_total, self_cpu_time_total,
        cpu_memory_usage, self_cpu_memory_usage, count, and the same with device or cuda in the place of cpu."""
        return tables.build(
            self, sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only, time_unit,
            memory=self._profile_memory, flops=self._with_flops, device=self._use_device,
        )  # fmt: skip

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path):
        """Write a trace that chrome://tracing and Perfetto show."""
        from . import chrome_trace

        chrome_trace.write(path, self)

    def supported_export_stacks_metrics(self):
        """What `export_stacks` can write."""
        return ["self_cpu_time_total", "self_cuda_time_total"]

    def export_stacks(self, path, metric):
        """Write lines "outermost;...;innermost value", which flame graph tools read, of the events with a stack.

        Args:
            path: the file.
            metric: "self_cpu_time_total" or "self_cuda_time_total"; microseconds.
        """
        self._check_metric("export_stacks", metric)
        translate = str.maketrans(" ;\t\n", "____")
        sums = defaultdict(int)
        for event in self:
            if event.stack:
                value = int(getattr(event, metric, 0))
                if value > 0:
                    sums[";".join(line.translate(translate) for line in reversed(event.stack))] += value
        with open(path, "w") as file:
            file.writelines(f"{stack} {value}\n" for stack, value in sums.items())

    def export_flame_graph(self, path, metric="self_cpu_time_total"):
        """Draw the events with a stack, under their lines, into an SVG file."""
        self._check_metric("export_flame_graph", metric)
        flame.write(
            path,
            [
                ([stacks.split_text(text) for text in event.stack], event.name, round(1000 * getattr(event, metric)))
                for event in self
                if event.stack and event.kind != "range"
            ],
            {"self_cpu_time_total": "Time in operators", "self_cuda_time_total": "Time of the GPU"}[metric],
        )

    def _check_metric(self, who, metric):
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"{who}: metric should be one of {self.supported_export_stacks_metrics()}, got {metric!r}")


def from_records(records, *, began, lines, profile_memory=False, with_flops=False, record_shapes=True, use_device=None):
    """An EventList of what `_native.profile_stop` gives; `began` is the nanosecond at which the recording began."""
    events = EventList(use_device=use_device, profile_memory=profile_memory, with_flops=with_flops)
    threads = {}
    for number, record in enumerate(records):
        name, kind, start, end, thread, parent, memory, device_memory, shapes, dtypes, results, stack = record
        event = FunctionEvent(
            number + 1, name, threads.setdefault(thread, len(threads) + 1), (start - began) / 1000,
            (end - began) / 1000, kind=kind,
            input_shapes=shapes if record_shapes else [], input_dtypes=dtypes, result_shapes=results,
            stack=lines.texts(stack),
            cpu_memory_usage=memory if profile_memory else 0,
            device_memory_usage=device_memory if profile_memory else 0,
        )  # fmt: skip
        event.system_thread, event.stack_number = thread, stack
        if with_flops:
            event.flops = flops.count(name, shapes, results)
        if parent >= 0:
            event.cpu_parent = events[parent]
            event.cpu_parent.cpu_children.append(event)
        events.append(event)
    if with_flops:  # what an operator is made of is counted once, at the operator
        for event in events:
            if event.flops and any(ancestor.flops for ancestor in ancestors(event)):
                event.flops = 0
    return events


def ancestors(event):
    """The events around one, innermost first."""
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event
