"""An exported program on another device."""

import cresset

from ..fx.node import map_aggregate

__all__ = ["move_to_device_pass"]


def move_to_device_pass(ep, location):
    """Move a program: its parameters, its constants, and the devices that its graph names. It is changed in place.

    Args:
        ep: the program.
        location: the device to go to; or, as a dictionary, where to go from each device.

    >>> program = cresset.export.export(nn.Linear(4, 2), (cresset.ones(1, 4),))
    >>> moved = passes.move_to_device_pass(program, "meta")
    >>> moved.module()(cresset.ones(3, 4, device="meta")).shape
    torch.Size([3, 2])
    """

    def moved(device):
        if not isinstance(location, dict):
            return cresset.device(location)
        to = location.get(str(device), location.get(device.type) if device.index is None else None)
        return device if to is None else cresset.device(to)

    def moved_tensor(tensor):
        there = tensor.to(moved(tensor.device))
        if isinstance(tensor, cresset.nn.Parameter) and there is not tensor:
            there = cresset.nn.Parameter(there.detach(), tensor.requires_grad)
        return there

    for tensors in (ep._state_dict, ep._constants):
        for name, value in tensors.items():
            if isinstance(value, cresset.Tensor):
                tensors[name] = moved_tensor(value)
    for node in ep.graph.nodes:
        node.args, node.kwargs = map_aggregate(
            (node.args, node.kwargs), lambda value: moved(value) if isinstance(value, cresset.device) else value
        )
        if _makes_on_default(node):
            node.kwargs = {**node.kwargs, "device": moved(cresset.device("cpu"))}
    ep.validate()
    return ep


def _makes_on_default(node):
    """Whether a node makes a tensor and does not say where: a recording says nothing of the CPU."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    if schema is None or node.kwargs.get("device") is not None:
        return False
    names = [argument.name for argument in schema.arguments]
    made_of_others = any("Tensor" in str(argument.type) for argument in schema.arguments)
    return "device" in names and not made_of_others and len(node.args) <= names.index("device")
