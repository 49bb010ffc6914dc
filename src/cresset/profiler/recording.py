"""profile: record the calls of a program, all of it or some steps (schedule), and hand over what was found."""

import enum
import json
import os
import socket
import time
import uuid
import warnings

from .. import _native
from . import chrome_trace, memory_timeline
from .activities import Activity, add_activities
from .events import DeviceType, EventList, from_records
from .ranges import record_function
from .stacks import Stacks


class ProfilerActivity(enum.IntEnum):
    """What can be recorded; `supported_activities()` tells what this machine does."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What the profiler does in a step: nothing, warm up, record, or record and hand over at the step's end."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities():
    """The activities that can be recorded here: those of the CPU, and of CUDA where there is a device."""
    from ..cuda import is_available

    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if is_available() else {ProfilerActivity.CPU}


def kineto_available():
    """Whether recordings hold what devices do and can be written as traces, for which PyTorch needs a library of this
    name. They do: the recording is our own.
    """
    return True


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function from the number of a step to what the profiler does in it.

    After `skip_first` steps it repeats, `repeat` times or for ever: `wait` idle steps, `warmup` steps that are recorded
    and thrown away, `active` steps that are kept. With `skip_first_wait` the first round has no waiting.

    >>> plan = cresset.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"schedule: expected active > 0 and the others not negative, got wait={wait}, warmup={warmup}, "
            f"active={active}, repeat={repeat}, skip_first={skip_first}"
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step):
        if step < 0:
            raise AssertionError(f"schedule: the number of a step is not negative, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat > 0 and step >= repeat * length:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """A function for `on_trace_ready` that writes each trace to a file in `dir_name`, where TensorBoard's profiler
    looks for it.
    """

    def handle(prof):
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(
            os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else ""))
        )

    return handle


def new_trace_id(callback):
    """A name for a recording: what the callback gives, or 32 random digits."""
    return uuid.uuid4().hex.upper() if callback is None else callback()


class Recording:
    """One stretch of recording: from start to stop, then its events.

    Args:
        record_shapes, profile_memory, with_stack, with_flops: as for `profile`.
        cuda: record what CUDA's devices do.
        cpu: give the operators as events; without it only what the devices did.
        keep_events: keep every call; without it there are only the `sums`.
        sums: add calls and memory up by stack.
    """

    def __init__(
        self, *, record_shapes, profile_memory, with_stack, with_flops, cuda=False, cpu=True, keep_events=True,
        sums=False,
    ):  # fmt: skip
        self.record_shapes, self.profile_memory, self.with_stack, self.with_flops = (
            record_shapes,
            profile_memory,
            with_stack,
            with_flops,
        )
        self.cuda, self.cpu, self.keep_events, self.adds_up = cuda, cpu, keep_events, sums
        self.first, self.events, self._hook = None, None, None

    def start(self):
        if self.profile_memory and self.keep_events:
            self._hook = memory_timeline.watch_optimizers()
        self.wall_clock = time.time_ns() - time.monotonic_ns()
        self.began = time.monotonic_ns()
        self.number, self.first = _native.profile_start(
            self.record_shapes or self.with_flops, self.profile_memory, self.with_stack, self.keep_events, self.adds_up
        )
        if self.cuda:
            _native.cuda.activities_start(self.keep_events)

    def stop(self):
        self.ended = time.monotonic_ns()
        activities = []
        try:
            if self.cuda:
                activities = _native.cuda.activities_stop(self.keep_events, self.began)
        finally:  # also where the device has a fault to tell of
            self._stop_operators()
        if not self.keep_events:
            self.sums["device"] = activities
            return
        add_activities(self.events, [Activity(*activity) for activity in activities], self.began, self.first)
        self.sums["device"] = [
            (event.stack_number, event.activity.end - event.activity.start) for event in self.events if event.activity
        ]
        if not self.cpu:
            self.events = self.events._alike([e for e in self.events if e.device_type is not DeviceType.CPU])

    def _stop_operators(self):
        if self._hook is not None:
            self._hook.remove()
            memory_timeline.note_parameters()
        records, allocations, lines, self.sums = _native.profile_stop(self.number, self.first)
        self.allocations = [
            self._within(allocation) for allocation in allocations if not 0 <= allocation[4] < self.began
        ]
        self.stacks = Stacks(lines)
        self.events = from_records(
            records, began=self.began, profile_memory=self.profile_memory, with_flops=self.with_flops,
            record_shapes=self.record_shapes, lines=self.stacks, use_device="cuda" if self.cuda else None,
        )  # fmt: skip

    def _within(self, allocation):
        """An allocation as this recording saw it: another one may have begun earlier."""
        return allocation if allocation[3] >= self.began else (*allocation[:3], -1, *allocation[4:])


class profile:
    """Record operators, backward nodes and named ranges with their times, and with CUDA among the activities the
    kernels, copies and fills of the devices, each with the operator that asked for it.

    Args:
        activities: of ProfilerActivity; all that can be recorded here by default (`supported_activities`).
        schedule: which steps to record (see `schedule`); call `step()` at the end of each. Without one everything
            inside is recorded.
        on_trace_ready: called with the profiler each time a recording is whole.
        record_shapes: keep the shapes of the inputs.
        profile_memory: keep how much memory each call took and gave back.
        with_stack: keep the lines of Python that made the call.
        with_flops: estimate the floating-point operations of products, convolutions, additions and multiplications.
        with_modules: PyTorch names TorchScript modules here; there are none.
        acc_events: add up the events of all rounds of a schedule, instead of keeping the last round's.

    >>> with cresset.profiler.profile(record_shapes=True) as prof:
    ...     _ = cresset.ones(2, 3) @ cresset.ones(3, 4)
    >>> [event.input_shapes for event in prof.events() if event.name == "aten::matmul"]
    [[[2, 3], [3, 4]]]
    """

    def __init__(
        self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
        with_stack=False, with_flops=False,
        with_modules=False, experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
    ):  # fmt: skip
        if execution_trace_observer is not None:
            raise NotImplementedError(
                "profile: execution_trace_observer is not supported; on_trace_ready gets the profiler with its events"
            )
        self.activities = set(activities) if activities is not None else supported_activities()
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            self.activities = (
                self.activities | {ProfilerActivity.CUDA} if use_cuda else self.activities - {ProfilerActivity.CUDA}
            )
        if not self.activities:
            raise AssertionError("profile: no valid activities, got an empty list; give ProfilerActivity.CPU")
        if schedule is not None and not callable(schedule):
            raise TypeError(
                f"profile: schedule should be a function from a step to a ProfilerAction, got {type(schedule).__name__}"
            )
        self.record_shapes, self.profile_memory, self.with_stack, self.with_flops, self.with_modules = (
            record_shapes,
            profile_memory,
            with_stack,
            with_flops,
            with_modules,
        )
        self.schedule = schedule if schedule is not None else lambda step: ProfilerAction.RECORD
        self.record_steps = schedule is not None
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.step_num, self.current_action = 0, ProfilerAction.NONE
        self.preset_metadata, self.metadata = {}, {}
        self.custom_trace_id_callback, self._trace_id = custom_trace_id_callback, None
        missing = self.activities - supported_activities()
        for activity in sorted(missing):
            warnings.warn(f"{activity.name} is not available, disabling {activity.name} profiling", stacklevel=2)
        self._recorded_activities = self.activities - missing
        if not self._recorded_activities:
            raise AssertionError(
                "No activities specified for the profiler: there is nothing to record of "
                + ", ".join(activity.name for activity in sorted(self.activities))
            )
        self.use_device = "cuda" if ProfilerActivity.CUDA in self._recorded_activities else None
        self._recording, self._events, self._step = None, None, None
        self._kept = []  # the recordings that the events are of

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    def start(self):
        """Begin, as entering the context does."""
        self._change(self.schedule(self.step_num))
        self._name_step()

    def stop(self):
        """End, as leaving the context does; a recording under way is whole then."""
        self._end_step()
        recorded = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._end(keep=recorded)
        self.current_action = ProfilerAction.NONE
        if recorded:
            self._hand_over()

    def step(self):
        """Say that the next step of the program begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end(keep=True)
            self.current_action = ProfilerAction.NONE
            self._hand_over()
        self._change(self.schedule(self.step_num))
        self._name_step()

    def _change(self, action):
        if not isinstance(action, ProfilerAction):
            raise TypeError(
                f"profile: the schedule gave {action!r} for step {self.step_num}, which is no ProfilerAction"
            )
        records = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if action in records and self.current_action not in records:
            self._end(keep=False)  # what was recorded to warm up
            self._begin()
        elif action is ProfilerAction.WARMUP and self._recording is None:
            self._begin()
        elif action is ProfilerAction.NONE:
            self._end(keep=False)
        elif action is ProfilerAction.WARMUP and self.current_action in records:
            warnings.warn("Incorrect schedule: RECORD followed by WARMUP", stacklevel=3)
            self._end(keep=False)
            self._begin()
        self.current_action = action

    def get_trace_id(self):
        """What names the recording: what custom_trace_id_callback gave when it began, else random digits; None
        before."""
        return self._trace_id

    def _begin(self):
        self._trace_id = new_trace_id(self.custom_trace_id_callback)
        self._recording = Recording(
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            cuda=ProfilerActivity.CUDA in self._recorded_activities,
            cpu=ProfilerActivity.CPU in self._recorded_activities,
        )
        self._recording.start()

    def _end(self, keep):
        if self._recording is None:
            return
        recording, self._recording = self._recording, None
        recording.stop()
        if keep:
            self._kept = [*(self._kept if self.acc_events else []), recording]
            self._events = recording.events._alike([event for kept in self._kept for event in kept.events])

    def _name_step(self):
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self):
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _hand_over(self):
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    @property
    def profiler(self):
        """The recording under way, or the last one, as an older `torch.autograd.profiler.profile`; None before."""
        recording = self._recording or (self._kept[-1] if self._kept else None)
        return None if recording is None else legacy_profile.of(recording, self)

    def _recorded(self):
        if self._events is None:
            raise AssertionError("profile: nothing is recorded yet; ask after the `with` block, or in on_trace_ready")
        return self._events

    def events(self):
        """What was recorded, as an EventList."""
        return self._recorded()

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """The events added up by name, and by input shapes if asked."""
        return self._recorded().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path):
        """Write a trace that chrome://tracing and Perfetto show; compressed if the name ends in .gz."""
        chrome_trace.write(
            path, self._recorded(), metadata={**self.preset_metadata, **self.metadata},
            record_shapes=self.record_shapes, profile_memory=self.profile_memory,
            with_flops=self.with_flops, with_stack=self.with_stack,
        )  # fmt: skip

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write the stacks with their times for flame graph tools; needs with_stack=True. `export_flame_graph` draws
        one by itself.

        Args:
            path: the file.
            metric: "self_cpu_time_total" or "self_cuda_time_total".
        """
        if not self.with_stack:
            warnings.warn("export_stacks: no stacks were recorded; give profile(with_stack=True)", stacklevel=2)
        self._recorded().export_stacks(path, metric)

    def export_flame_graph(self, path, metric="self_cpu_time_total"):
        """Draw the operators under the lines that called them, as wide as the time they took, into an SVG file; needs
        with_stack=True.

        Args:
            path: the SVG file.
            metric: "self_cpu_time_total" or "self_cuda_time_total".
        """
        if not self.with_stack:
            raise RuntimeError("export_flame_graph: no stacks were recorded; give profile(with_stack=True)")
        self._recorded().export_flame_graph(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Write how much memory was in use over time, by what it was for; needs record_shapes=True,
        profile_memory=True and with_stack=True.

        Args:
            path: .html draws a page, .json or .json.gz holds [microseconds, [bytes by category at each]], and
                .raw.json.gz (nanoseconds, action, bytes, category) of each happening, in PyTorch's form.
            device: "cpu" or one of CUDA's; cuda:0 where there is one, else the CPU.
        """
        for name in ("record_shapes", "profile_memory", "with_stack"):
            if not getattr(self, name):
                raise ValueError(f"export_memory_timeline: {name}=True is required for memory profiling")
        if device is None:
            device = "cuda:0" if ProfilerActivity.CUDA in supported_activities() else "cpu"
        self._recorded()
        memory_timeline.export(path, self._kept, _native.device(device))

    def add_metadata(self, key, value):
        """Put a text into the trace's head."""
        self.metadata[key] = value

    def add_metadata_json(self, key, value):
        """Put a value, given as JSON, into the trace's head."""
        self.metadata[key] = json.loads(value)

    def preset_metadata_json(self, key, value):
        """Put a value, given as JSON, into the head of every trace."""
        self.preset_metadata[key] = json.loads(value)

    def toggle_collection_dynamic(self, enable, activities):
        """Stop recording for a while (enable=False) and go on (True), if the CPU is among the activities."""
        if ProfilerActivity.CPU not in activities:
            return
        if enable and self._recording is None:
            self.acc_events = True
            self._begin()
        elif not enable and self._recording is not None:
            self.acc_events = True
            self._end(keep=True)


class legacy_profile:
    """torch.autograd.profiler.profile: record what runs inside, without steps.

    >>> with cresset.autograd.profiler.profile() as prof:
    ...     _ = cresset.ones(2).exp()
    >>> [event.name for event in prof.function_events]
    ['aten::ones', 'aten::exp']
    """

    def __init__(
        self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
        profile_memory=False, with_stack=False, with_modules=False,
        use_kineto=False, use_cpu=True, experimental_config=None, acc_events=False, custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        activity_filters=None,
    ):  # fmt: skip
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if use_device is not None and use_device != "cuda":
            warnings.warn(f"{use_device} doesn't support profile.", stacklevel=2)
            use_device = None
        if use_cuda:
            use_device = "cuda"
        if use_device == "cuda" and enabled and ProfilerActivity.CUDA not in supported_activities():
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
            use_cuda, use_device = False, None
        if enabled and not use_cpu and use_device is None:
            raise AssertionError("No activities specified for the profiler")
        self.enabled, self.use_cuda, self.use_device, self.entered = enabled, use_cuda, use_device, False
        self.use_cpu = use_cpu
        self.record_shapes, self.with_flops, self.profile_memory, self.with_stack, self.with_modules = (
            record_shapes,
            with_flops,
            profile_memory,
            with_stack,
            with_modules,
        )
        self._recording, self.trace_id, self._new_trace_id = None, "", custom_trace_id_callback

    @classmethod
    def of(cls, recording, asked):
        """What a recording of a newer profiler, `asked`, looks like to the older one."""
        made = cls(
            use_device=asked.use_device, record_shapes=asked.record_shapes, with_flops=asked.with_flops,
            profile_memory=asked.profile_memory, with_stack=asked.with_stack,
        )  # fmt: skip
        made.entered, made._recording, made.trace_id = True, recording, asked.get_trace_id()
        return made

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self.trace_id = new_trace_id(self._new_trace_id)
        self._recording = Recording(
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            cuda=self.use_device == "cuda",
            cpu=self.use_cpu,
        )
        self._recording.start()
        return self

    def __exit__(self, *exception):
        if self.enabled:
            self._recording.stop()
        return False

    @property
    def function_events(self):
        """The events, as an EventList; None while they are recorded."""
        return self._recording.events if self._recording else EventList() if not self.enabled else None

    def _finished(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self):
        return repr(self.function_events) if self.function_events is not None else "<unfinished torch.autograd.profile>"

    def __str__(self):
        return str(self.function_events) if self.function_events is not None else "<unfinished torch.autograd.profile>"

    def table(self, *args, **kwargs):
        return self._finished().table(*args, **kwargs)

    table.__doc__ = EventList.table.__doc__

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """The events added up by name, and by input shapes if asked."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        """Everything added up."""
        return self._finished().total_average()

    def export_chrome_trace(self, path):
        """Write a trace that chrome://tracing and Perfetto show."""
        self._finished().export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write the stacks with their times for flame graph tools."""
        self._finished().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self):
        """The time of all events without what they contain, in microseconds."""
        return self._finished().self_cpu_time_total
