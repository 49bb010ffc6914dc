"""What is served, how, and where: the settings of a model and of the server, from options, a TOML file or Python."""

import dataclasses
import os
import re
import tomllib

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")  # fits into a path, a label and a log line as it is
DEVICE = re.compile(r"cpu|cuda(:[0-9]{1,3})?")


class SettingsError(ValueError):
    """A setting that cannot be: said at once, before anything is started."""


def check_name(name, what):
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise SettingsError(
            f"serve: {what} should have letters, digits, '.', '_' and '-' only (at most 128), got {name!r}"
        )
    return name


def check_device(device, what):
    if not isinstance(device, str) or not DEVICE.fullmatch(device):
        raise SettingsError(f"serve: {what} should be cpu, cuda or cuda:1, got {device!r}")


@dataclasses.dataclass
class ModelSettings:
    """One version of one model.

    Args:
        name, version: how requests ask for it.
        source: a .pt2 file (an exported program), a .pt file (a TorchScript archive), or "file.py:Name" or
            "package.module:Name": a handler class with TorchServe's methods, or a function that returns a module.
        device: where it is computed: "cpu", "cuda:1", or "cuda" for all GPUs, among which the workers are divided.
        workers: processes that compute; threads: of each (0: the processors, divided among the workers, without one of
            them while the front is busy).
        batch: how many requests may be computed together; delay: milliseconds that a request may be held back at most
            so that its batch gets full.
        queue: requests that may wait; one more is answered 429.
        timeout: seconds a request may take, queue included.
        retries: how often a request is given to another worker when its worker died.
        memory: MB that the requests of one batch may take in a worker, on top of the loaded model (0: no bound); on a
            GPU, so many of the GPU's besides.
        inputs, outputs: {"name", "datatype", "shape"} each, where the model does not say it itself.
    """

    name: str
    source: str
    version: str = "1"
    device: str = "cpu"
    workers: int = 1
    threads: int = 0
    batch: int = 1
    delay: float = 0.0
    queue: int = 256
    timeout: float = 30.0
    retries: int = 1
    memory: int = 1024
    inputs: list | None = None
    outputs: list | None = None

    def __post_init__(self):
        self.version = str(self.version)
        check_name(self.name, "a model's name")
        check_name(self.version, f"the version of {self.name}")
        check_device(self.device, f"device of {self.name}")
        for field, least, most in (
            ("workers", 0, 1000), ("threads", 0, 1000), ("batch", 1, 1_000_000), ("queue", 1, 1_000_000),
            ("retries", 0, 1000), ("memory", 0, 1_000_000_000),
        ):  # fmt: skip
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise SettingsError(
                    f"serve: {field} of {self.name} should be a whole number from {least} to {most}, got {value!r}"
                )
        for field, least in (("delay", 0), ("timeout", 0.001)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= 1e6:
                raise SettingsError(f"serve: {field} of {self.name} should be at least {least}, got {value!r}")

        for entry in (*(self.inputs or ()), *(self.outputs or ())):
            if (
                not isinstance(entry, dict)
                or set(entry) != {"name", "datatype", "shape"}
                or not isinstance(entry["shape"], list)
                or not all(type(size) is int and size >= -1 for size in entry["shape"])
            ):
                raise SettingsError(
                    f"serve: inputs and outputs of {self.name} should have name, datatype and shape (-1: any "
                    f"size), got {entry}"
                )

    @property
    def is_code(self):
        """Whether the source names Python code, not a file of data."""
        return ":" in os.path.basename(self.source)


@dataclasses.dataclass
class ServerSettings:
    """The server.

    Args:
        host, port: the address. Others than this machine's own (localhost) need a token.
        token: what requests have to show (Authorization: Bearer TOKEN; browsers: any name, TOKEN as the password).
        device: where models are computed that do not say it themselves, as those of the store.
        store: the folder from which models can be loaded at run time; without it none can.
        max_request: MB of a request's body; max_connections: at the same time.
        head_timeout: seconds for the head of a request to arrive.
        grace: seconds for running requests at the end.
        log_requests: write a line for each request, not only for failures and events.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    device: str = "cpu"
    store: str | None = None
    max_request: float = 16.0
    max_connections: int = 1000
    head_timeout: float = 30.0
    grace: float = 30.0
    log_requests: bool = False

    def __post_init__(self):
        check_device(self.device, "device")
        if not self.is_local and not self.token:
            raise SettingsError(
                f"serve: {self.host} can be reached from other machines, which needs a token; put one into a file and "
                "give it with --token-file FILE, or set CRESSET_SERVE_TOKEN"
            )
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or not self.token.isprintable()):
            raise SettingsError("serve: the token should have at least 8 printable ASCII letters")
        if self.store is not None and not os.path.isdir(self.store):
            raise SettingsError(f"serve: the store {self.store!r} is not a folder")
        if self.max_request <= 0:
            raise SettingsError(f"serve: max_request should be above 0 MB, got {self.max_request}")

    @property
    def is_local(self):
        return is_local(self.host)

    @property
    def max_bytes(self):
        return int(self.max_request * 2**20)


def is_local(host):
    """Whether a name means this machine: what a browser elsewhere cannot be made to mean by DNS.

    >>> is_local("127.0.0.1"), is_local("0.0.0.0"), is_local("localhost.evil.example")
    (True, False, False)
    """
    return (
        host.lower() in ("localhost", "::1", "[::1]")
        or re.fullmatch(r"127\.\d{1,3}\.\d{1,3}\.\d{1,3}", host) is not None
    )


def parse_model(text, defaults=None):
    """The settings of `[NAME[@VERSION]=]SOURCE`; the name is the file's or the class's unless given.

    >>> parse_model("digits@2=models/new.pt2").version, parse_model("models/digits.pt2").name
    ('2', 'digits')
    """
    left, equals, source = text.partition("=")
    if not equals:
        left, source = "", text
    name, _, version = left.partition("@")
    if not name:
        last = os.path.basename(source)
        name = last.rpartition(":")[2] if ":" in last else last.rpartition(".")[0] or last
    return ModelSettings(**{**(defaults or {}), "name": name, "version": version or "1", "source": source})


def read_config(path):
    """(the server's settings, the models' settings, splits) of a TOML file, as plain dicts.

    [server] has the fields of ServerSettings, each [[model]] those of ModelSettings, and [split.NAME] weights by
    version.
    """
    with open(path, "rb") as file:
        try:
            config = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"serve: {path} is not TOML: {error}") from None
    unknown = set(config) - {"server", "model", "split"}
    server, models, splits = config.get("server", {}), config.get("model", []), config.get("split", {})
    if unknown or not isinstance(server, dict) or not isinstance(models, list) or not isinstance(splits, dict):
        raise SettingsError(f"serve: {path} may have [server], [[model]] and [split.NAME], got {sorted(config)}")
    for table, kind in ((server, ServerSettings), *((model, ModelSettings) for model in models)):
        fields = {field.name for field in dataclasses.fields(kind)}
        if not isinstance(table, dict) or set(table) - fields:
            wrong = sorted(set(table) - fields) if isinstance(table, dict) else table
            raise SettingsError(f"serve: {path} has unknown settings {wrong}; there are {sorted(fields)}")
    for model in models:
        if not {"name", "source"} <= set(model):
            raise SettingsError(f"serve: a [[model]] of {path} needs name and source, got {sorted(model)}")
    return server, models, splits
