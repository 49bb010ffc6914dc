"""The loggers of the framework's parts: their names, levels and handlers; and the trace file of TORCH_TRACE."""

import contextlib
import functools
import hashlib
import importlib.util
import itertools
import json
import logging
import os
import re
import sys
import tempfile
import warnings
import weakref

from ..compiler import telling
from ._registrations import ARTIFACTS, LOGS, OFF_BY_DEFAULT, TOLD

LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, logging.NOTSET)
DEFAULT_LOG_LEVEL = logging.WARNING
LOG_ENV_VAR, LOG_OUT_ENV_VAR, LOG_FORMAT_ENV_VAR = "TORCH_LOGS", "TORCH_LOGS_OUT", "TORCH_LOGS_FORMAT"
TRACE_ENV_VAR, DTRACE_ENV_VAR = "TORCH_TRACE", "TORCH_DTRACE"
LOG_PREFIX = "dedicated_log_torch_trace_"

trace_log = logging.getLogger("torch.__trace")
trace_log.propagate = False


class LogRegistry:
    """The names that can be set, and the loggers behind them."""

    def __init__(self):
        self.log_alias_to_log_qnames = {name: list(loggers) for name, loggers in LOGS.items()}
        self.artifact_names, self.off_by_default_artifact_names = set(ARTIFACTS), set(OFF_BY_DEFAULT)
        self.artifact_log_formatters = {"custom_format_test_artifact": logging.Formatter("%(message)s")}
        self.artifact_descriptions = {name: text for name, (_, text) in TOLD.items()}
        self.artifact_log_qnames, self.child_log_qnames = set(), set()

    def is_log(self, alias):
        return alias in self.log_alias_to_log_qnames

    def is_artifact(self, name):
        return name in self.artifact_names

    def is_off_by_default(self, artifact_name):
        return artifact_name in self.off_by_default_artifact_names

    def get_log_qnames(self):
        return set(itertools.chain.from_iterable(self.log_alias_to_log_qnames.values()))

    def register_log(self, alias, log_qnames):
        self.log_alias_to_log_qnames[alias] = [log_qnames] if isinstance(log_qnames, str) else list(log_qnames)

    def register_artifact_name(self, name, description, visible, off_by_default, log_format):
        self.artifact_names.add(name)
        if visible:
            self.artifact_descriptions[name] = description
        if off_by_default:
            self.off_by_default_artifact_names.add(name)
        if log_format is not None:
            self.artifact_log_formatters[name] = logging.Formatter(log_format)


class LogState:
    """What was asked for: levels of loggers, and names of artifacts."""

    def __init__(self):
        self.log_qname_to_level, self.artifact_names = {}, set()

    def enable_log(self, log_qnames, log_level):
        for name in [log_qnames] if isinstance(log_qnames, str) else log_qnames:
            self.log_qname_to_level[name] = log_level

    def enable_artifact(self, artifact_name):
        self.artifact_names.add(artifact_name)

    def is_artifact_enabled(self, name):
        return name in self.artifact_names


log_registry, log_state = LogRegistry(), LogState()
_handlers = weakref.WeakSet()  # our own, so that those of the program are left alone


DEFAULT_LOGGING = {
    "dynamo": logging.INFO,
    "aot": logging.INFO,
    "inductor": logging.INFO,
    "fsdp": logging.INFO,
    "ddp_graphs": True,
    "graph_breaks": True,
    "side_effects": True,
    "guards": True,
    "recompiles": True,
    "dynamic": logging.INFO,
}


def set_logs(*, all=None, modules=None, **settings):
    """Set which messages are shown on the standard error; what an earlier call set is taken back first. `TORCH_LOGS`,
    where it is set, counts, and this does nothing.

    Args:
        all: a level of Python's `logging` for all parts.
        modules: further settings as a dict; a key may also be a module's dotted name, its value a level.
        settings: for a part (`dynamo`, `inductor`, `distributed`, `onnx`, ...) a level, for a kind of message
            (`graph_code`, `graph_breaks`, `recompiles`, `output_code`, `fusion`, ...) whether it is shown.

    >>> cresset._logging.set_logs(graph_breaks=True)
    >>> cresset._logging.set_logs()
    """
    if LOG_ENV_VAR in os.environ:
        logging.getLogger("torch._logging._internal").warning(
            "Using TORCH_LOGS environment variable for log settings, ignoring call to set_logs"
        )
        return
    for name in settings:
        if not log_registry.is_artifact(name) and not log_registry.is_log(name):
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
    state = LogState()
    for name, value in itertools.chain([("torch", all)], settings.items(), (modules or {}).items()):
        if value is not None:
            _enable(state, name, value)
    _set_log_state(state)
    _init_logs()


def _enable(state, name, value):
    """One setting of `set_logs`."""
    if log_registry.is_artifact(name):
        if not isinstance(value, bool):
            raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
        if value:
            state.enable_artifact(name)
        return
    known = log_registry.is_log(name) or name in log_registry.child_log_qnames
    if not known and not _is_valid_module(name):
        raise ValueError(f"Unrecognized log or artifact name passed to set_logs: {name}")
    if isinstance(value, bool) or value not in LEVELS:
        valid = ",".join(map(str, LEVELS))
        raise ValueError(f"Unrecognized log level for log {name}: {value}, valid level values are: {valid}")
    if not known:
        _register_module(name)
    state.enable_log(log_registry.log_alias_to_log_qnames.get(name, name), value)


def _is_valid_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _register_module(name):
    """A module that is set by its dotted name; below a logger that has handlers it needs none of its own."""
    parents = log_registry.get_log_qnames()
    if any(name.startswith(parent + ".") for parent in parents):
        log_registry.child_log_qnames.add(name)
    else:
        log_registry.register_log(name, name)


def register_log(setting_name, log_name):
    """Let `setting_name` set the level of a logger, or of each of a list."""
    log_registry.register_log(setting_name, log_name)


def register_artifact(setting_name, description, visible=False, off_by_default=False, log_format=None):
    """A further kind of message.

    Args:
        visible: whether `TORCH_LOGS=help` names it.
        off_by_default: it is shown only when it is named, whatever the level of its part.
        log_format: a format of `logging.Formatter` in place of the usual prefix.
    """
    log_registry.register_artifact_name(setting_name, description, visible, off_by_default, log_format)


def getArtifactLogger(module_qname, artifact_name):
    """The logger of a module for one kind of message: its name is `module.__kind`."""
    if not log_registry.is_artifact(artifact_name):
        raise ValueError(
            f"Artifact name: {artifact_name!r} not registered, please call register_artifact({artifact_name!r}) in "
            "torch._logging.registrations."
        )
    log = logging.getLogger(f"{module_qname}.__{artifact_name}")
    log.artifact_name = artifact_name
    log_registry.artifact_log_qnames.add(log.name)
    configure_artifact_log(log)
    return log


def configure_artifact_log(log):
    """A logger of one kind follows its part's level, unless it is off by default; it is shown when it was named."""
    if log_registry.is_off_by_default(log.artifact_name):
        log.propagate = False
    if log_state.is_artifact_enabled(log.artifact_name):
        log.setLevel(logging.DEBUG)
        log.propagate = True


def tell(artifact_name, make):
    """A message of torch.compile, made only if it is shown."""
    log = getArtifactLogger(TOLD[artifact_name][0], artifact_name)
    if log.isEnabledFor(logging.DEBUG) and (log.propagate or log.handlers):
        log.debug("%s", make())


def help_message(verbose=False):
    """What `TORCH_LOGS=help` says."""
    lines = [
        "TORCH_LOGS: names with commas between them; +name shows all of a part, -name its errors only.",
        "",
        f"all: {', '.join(sorted(log_registry.log_alias_to_log_qnames))}",
        "",
    ]
    for name in sorted(log_registry.artifact_names if verbose else log_registry.artifact_descriptions):
        lines.append(f"{name:24} {log_registry.artifact_descriptions.get(name, '')}".rstrip())
    return "\n".join(lines)


def _parse_log_settings(settings):
    """The state that the text of TORCH_LOGS asks for."""
    state, settings = LogState(), settings.strip().strip("'\"")
    if settings in ("help", "+help"):
        raise ValueError(help_message(settings == "+help"))
    for word in filter(None, re.sub(r"\s+", "", settings).split(",")):
        name = word.lstrip("+-")
        name = "torch" if name == "all" else name
        level = {"+": logging.DEBUG, "-": logging.ERROR}.get(word[0], logging.INFO)
        if log_registry.is_artifact(name):
            state.enable_artifact(name)
        elif log_registry.is_log(name):
            state.enable_log(log_registry.log_alias_to_log_qnames[name], level)
        elif re.fullmatch(r"[\w.]+", name) and _is_valid_module(name):
            _register_module(name)
            state.enable_log(name, level)
        else:
            valid = ", ".join(sorted({"all", *log_registry.log_alias_to_log_qnames, *log_registry.artifact_names}))
            raise ValueError(f"Invalid log settings: {settings}: {word!r} is no name of a log. Valid settings: {valid}")
    return state


class TorchLogsFormatter(logging.Formatter):
    """`V1116 08:22:37.000123 1234 module.py:12] [__kind] text`: the prefix stands before each line."""

    def format(self, record):
        artifact_name = getattr(logging.getLogger(record.name), "artifact_name", None)
        own = log_registry.artifact_log_formatters.get(artifact_name)
        if own is not None:
            return own.format(record)
        text = logging.Formatter("%(message)s").format(record)
        prefix = _prefix(self, record) + (f" [__{artifact_name}]" if artifact_name else "")
        return "\n".join(f"{prefix} {line}" for line in text.split("\n"))


class _TraceFormatter(logging.Formatter):
    """A line of JSON behind the prefix; the lines of the payload follow, each behind a tab."""

    def format(self, record):
        line = f"{_prefix(self, record)} {json.dumps(record.metadata, default=repr)}"
        if record.payload is not None:
            line += "".join(f"\n\t{part}" for part in record.payload.split("\n"))
        return line


def _prefix(formatter, record):
    level = {"DEBUG": "V", "INFO": "I", "WARNING": "W", "ERROR": "E", "CRITICAL": "C"}.get(record.levelname)
    time = formatter.formatTime(record, "%m%d %H:%M:%S")
    rank = _rank()
    shown = "" if rank is None else f"[rank{rank}]:"
    path = record.pathname
    for folder in sorted((folder for folder in sys.path if folder), key=len, reverse=True):
        if path.startswith(folder.rstrip(os.sep) + os.sep):
            path = path[len(folder.rstrip(os.sep)) + 1 :]
            break
    microseconds = int(record.msecs * 1000)
    return f"{shown}{level or record.levelname}{time}.{microseconds:06d} {record.process} {path}:{record.lineno}]"


def _rank():
    """This process's rank, where a program has begun to be distributed."""
    package = __package__.partition(".")[0]
    distributed = sys.modules.get(f"{package}.distributed")
    return distributed.get_rank() if distributed is not None and distributed.is_initialized() else None


def _formatter():
    shape = os.environ.get(LOG_FORMAT_ENV_VAR)
    if shape is None:
        return TorchLogsFormatter()
    return logging.Formatter(logging.BASIC_FORMAT if shape in ("short", "basic") else shape)


def _add(log, handler, formatter):
    _handlers.add(handler)
    handler.setFormatter(formatter)
    handler.setLevel(logging.DEBUG)
    log.addHandler(handler)


def _remove_handlers(log):
    for handler in [handler for handler in log.handlers if handler in _handlers]:
        log.removeHandler(handler)
        handler.close()


def _set_log_state(state):
    global log_state
    log_state = state


def _get_log_state():
    return log_state


def _init_logs(log_file_name=None):
    """Give the loggers the levels and handlers that were asked for."""
    if (setting := os.environ.get(LOG_ENV_VAR)) is not None:
        _set_log_state(_parse_log_settings(setting))
    log_file_name = os.environ.get(LOG_OUT_ENV_VAR, log_file_name)
    formatter, names = _formatter(), log_registry.get_log_qnames()
    for name in names:
        log = logging.getLogger(name)
        _remove_handlers(log)
        log.setLevel(DEFAULT_LOG_LEVEL if name == "torch" else logging.NOTSET)
        log.propagate = False
        _add(log, logging.StreamHandler(), formatter)
        if log_file_name is not None:
            _add(log, logging.FileHandler(log_file_name), formatter)
    for name in log_registry.child_log_qnames | log_registry.artifact_log_qnames:
        log = logging.getLogger(name)
        log.setLevel(logging.NOTSET)
        log.propagate = True
    for name, level in log_state.log_qname_to_level.items():
        logging.getLogger(name).setLevel(level)
    for name in log_registry.artifact_log_qnames:
        configure_artifact_log(logging.getLogger(name))
    telling.logs = sys.modules[__name__] if _anything_asked() else None


def _anything_asked():
    """Whether a message of torch.compile can be shown at all: then it asks before it makes one."""
    return bool(log_state.artifact_names) or any(
        level < DEFAULT_LOG_LEVEL for level in log_state.log_qname_to_level.values()
    )


# ---- what programs use beside


@functools.lru_cache(None)
def warning_once(logger_obj, *args, **kwargs):
    """`logger_obj.warning(...)`, once for the same arguments."""
    logger_obj.warning(*args, **kwargs)


@contextlib.contextmanager
def hide_warnings(filter_fn=lambda *args, **kwargs: True):
    """Inside, only warnings for which `filter_fn` (called as `warnings.showwarning`) is true are shown."""
    before = warnings.showwarning

    def show(*args, **kwargs):
        if filter_fn(*args, **kwargs):
            before(*args, **kwargs)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


class LazyString:
    """A message that is made when it is shown.

    >>> str(cresset._logging.LazyString("{} and {}".format, 1, 2))
    '1 and 2'
    """

    def __init__(self, func, *args, **kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self):
        return self.func(*self.args, **self.kwargs)


# ---- the trace file


def _trace_handler():
    """The handler of the file in the folder that TORCH_TRACE names, which is made at the first record; None without."""
    folder = os.environ.get(DTRACE_ENV_VAR) or os.environ.get(TRACE_ENV_VAR)
    if not folder:
        return None
    for handler in trace_log.handlers:
        if handler in _handlers and getattr(handler, "folder", None) == folder:
            return handler
    _remove_handlers(trace_log)
    os.makedirs(folder, exist_ok=True)
    rank = _rank()
    middle = "" if rank is None else f"rank_{rank}_"
    descriptor, path = tempfile.mkstemp(suffix=".log", prefix=LOG_PREFIX + middle, dir=folder)
    os.close(descriptor)
    handler = logging.FileHandler(path)
    handler.folder = folder
    trace_log.setLevel(logging.DEBUG)
    _add(trace_log, handler, _TraceFormatter())
    return handler


def trace_structured(
    name, metadata_fn=dict, *, payload_fn=lambda: None, suppress_context=False, expect_trace_id=True,
    record_logging_overhead=True, compile_id=None,
):  # fmt: skip
    """Write a record to the trace file, where `TORCH_TRACE` names a folder for it; without, nothing is called.

    Args:
        name: the key of the record, for what `metadata_fn` gives.
        metadata_fn: gives what JSON can hold.
        payload_fn: gives a text, or what JSON can hold, that follows the record with its checksum.
        suppress_context: leave out the rank and `compile_id`.
        compile_id: kept in the record.
        expect_trace_id, record_logging_overhead: of PyTorch's numbers of compilations, which are not here.
    """
    if name in ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "severity", "timestamp",
                "pathname", "thread"):  # fmt: skip
        raise AssertionError(f"trace_structured: {name!r} is the name of a field that every record has")
    handler = _trace_handler()
    if handler is None:
        return
    if not callable(metadata_fn) or not callable(payload_fn):
        raise AssertionError("trace_structured: metadata_fn and payload_fn are functions")
    record = {name: metadata_fn()}
    if not suppress_context:
        if (rank := _rank()) is not None:
            record["rank"] = rank
        if compile_id is not None:
            record["compile_id"] = str(compile_id)
    payload = payload_fn()
    if payload is not None:
        payload = payload if isinstance(payload, str) else json.dumps(payload, default=repr)
        record["has_payload"] = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    trace_log.debug("", extra={"metadata": record, "payload": payload}, stacklevel=2)


def dtrace_structured(
    name, metadata_fn=dict, *, payload_fn=lambda: None, suppress_context=False, expect_trace_id=False,
    record_logging_overhead=True,
):  # fmt: skip
    """`trace_structured` of what is written only where `TORCH_DTRACE` names the folder."""
    if os.environ.get(DTRACE_ENV_VAR):
        trace_structured(name, metadata_fn, payload_fn=payload_fn, suppress_context=suppress_context)


def trace_structured_artifact(name, encoding, payload_fn=lambda: None, compile_id=None):
    """A record of the key `artifact` with a name, an encoding and a payload."""
    trace_structured(
        "artifact", lambda: {"name": name, "encoding": encoding}, payload_fn=payload_fn, compile_id=compile_id
    )


def get_structured_logging_overhead():
    """The seconds that records took of the graph that is being compiled: None, as none is."""
    return None
