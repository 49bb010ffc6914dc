"""A model from its source: an exported program, a TorchScript archive, or Python code that the operator named.

Files are read by cresset's own readers, which run nothing. Each model says what it takes and gives, as far as it knows.
"""

import importlib
import importlib.util
import inspect
import os

import cresset
from cresset.export.passes import move_to_device_pass

from .datatypes import NAMES
from .problems import Refused
from .settings import SettingsError


class Program:
    """A model as a function of tensors by name. They come and go by way of the CPU, wherever it computes."""

    def __init__(self, run, platform, names, inputs=None, outputs=None, *, device, fixed_batch=False):
        self.run, self.platform, self.names, self.fixed_batch = run, platform, names, fixed_batch
        self.device = device
        self.inputs, self.outputs = inputs or [], outputs or []

    def __call__(self, inputs):
        """Outputs by name."""
        given = []
        for name in self.names:
            if name not in inputs:
                break
            given.append(inputs[name].to(self.device))
        if len(given) != len(inputs) or len(given) < len(self.inputs):
            raise Refused(400, f"the inputs are {', '.join(self.names)}, got {', '.join(inputs)}"[:500])
        with cresset.inference_mode():
            return self.named(self.run(*given))

    def named(self, value):
        if isinstance(value, cresset.Tensor):
            value = [value]
        if isinstance(value, (list, tuple)):
            known = [output["name"] for output in self.outputs]
            names = known if len(known) == len(value) else [f"output_{i}" for i in range(len(value))]
            value = dict(zip(names, value))
        if not isinstance(value, dict) or not all(isinstance(item, cresset.Tensor) for item in value.values()):
            raise Refused(500, "the model should give a tensor, or several in a tuple, list or dict")
        return {str(name): item.cpu() for name, item in value.items()}

    def check(self, inputs):
        """Refuse inputs that are not what the model says it takes."""
        for entry in self.inputs:
            name, shape, tensor = entry["name"], entry["shape"], inputs.get(entry["name"])
            if tensor is None:
                continue  # said where the names are compared
            if NAMES.get(tensor.dtype) != entry["datatype"]:
                raise Refused(400, f"input {name!r} should be {entry['datatype']}, got {NAMES.get(tensor.dtype)}")
            got = list(tensor.shape)
            if len(got) != len(shape) or any(want not in (-1, size) for want, size in zip(shape, got)):
                raise Refused(400, f"input {name!r} should have shape {shape} (-1: any size), got {got}")


def load(settings, device):
    """The Program on a device, or the handler class, of a model's settings."""
    if settings.is_code:
        found = _named_code(settings.source)
        if inspect.isclass(found) and not issubclass(found, cresset.nn.Module):
            return found
        program = _from_factory(found, settings.source, device)
    else:
        if not os.path.isfile(settings.source):
            raise SettingsError(f"there is no file {settings.source!r}")
        _check_kind(settings.source)
        read = _exported if settings.source.endswith(".pt2") else _torchscript
        program = read(settings.source, device)
    if settings.inputs is not None:
        program.inputs = settings.inputs
        program.names = [entry["name"] for entry in settings.inputs]
    if settings.outputs is not None:
        program.outputs = settings.outputs
    return program


def _check_kind(path):
    """Refuse a file that is no archive, with what would be one: the readers could only say that it is damaged."""
    if path.endswith(".py"):
        raise SettingsError(f"{path} is Python code; name its class or function, as in {path}:NAME")
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise SettingsError(f"{path} is neither a program from torch.export.save nor a TorchScript archive")


def _exported(path, device):
    exported = move_to_device_pass(cresset.export.load(path), device)
    nodes = {node.name: node for node in exported.graph.nodes}
    signature = exported.graph_signature

    def described(name, shown):
        value = nodes[name].meta["val"]
        sizes = nodes[name].meta.get("sizes", value.shape)
        return {
            "name": shown,
            "datatype": NAMES[value.dtype],
            "shape": [size if isinstance(size, int) else -1 for size in sizes],
        }

    inputs = [described(name, name) for name in signature.user_inputs]
    outputs = [described(name, f"output_{i}") for i, name in enumerate(signature.user_outputs)]
    fixed = not all(entry["shape"][:1] == [-1] for entry in (*inputs, *outputs))
    names = [entry["name"] for entry in inputs]
    return Program(exported.module(), "cresset_export", names, inputs, outputs, device=device, fixed_batch=fixed)


def _torchscript(path, device):
    module = cresset.jit.load(path, map_location=device)
    module.eval()
    names = [argument.name for argument in module.forward.schema.arguments[1:]]
    return Program(module, "torchscript", names, device=device)


def _named_code(source):
    """The class or function that `file.py:Name` or `package.module:Name` names."""
    place, _, name = source.rpartition(":")
    if place.endswith(".py"):
        if not os.path.isfile(place):
            raise SettingsError(f"there is no file {place!r}")
        spec = importlib.util.spec_from_file_location(f"served_{os.path.basename(place)[:-3]}", place)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    found = getattr(module, name, None)
    if not callable(found):
        raise SettingsError(f"{place} has no class or function {name!r}")
    return found


def _from_factory(factory, source, device):
    """A Program of what the function returns: a module, or a module and a tuple of example inputs."""
    made = factory()
    module, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not callable(module):
        raise SettingsError(f"{source} should return a module, got {type(module).__name__}")
    if isinstance(module, cresset.nn.Module):
        module.eval().to(device)
    forward = module.forward if isinstance(module, cresset.nn.Module) else module
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(forward).parameters.values() if p.kind in kinds]
    program = Program(module, "cresset_module", names, device=device)
    if example is not None:
        given = dict(zip(names, example if isinstance(example, tuple) else (example,)))
        outputs = program(given)
        program.inputs, program.outputs = ([_any_batch(*item) for item in side.items()] for side in (given, outputs))
    return program


def _any_batch(name, tensor):
    return {"name": name, "datatype": NAMES[tensor.dtype], "shape": [-1, *tensor.shape[1:]]}
