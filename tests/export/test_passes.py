"""An exported program on another device: what its graph makes and where, its state, and the dictionary of places."""

import cresset
from cresset import nn
from cresset.export.passes import move_to_device_pass


class Making(nn.Module):
    """Makes tensors with a device, without one, and moves one."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("scale", cresset.full((4,), 2.0))
        self.offset = cresset.arange(4.0)

    def forward(self, x):
        made = cresset.zeros(x.shape[0], 4) + cresset.arange(4, device=x.device)
        return self.linear(x) * self.scale + self.offset + made.to("cpu") + cresset.tensor([1.0, 2.0, 3.0, 4.0])


def exported():
    shapes = ({0: cresset.export.Dim("batch")},)
    return cresset.export.export(Making(), (cresset.zeros(2, 4),), dynamic_shapes=shapes)


def test_all_that_a_program_has_and_makes_goes_to_the_device():
    program = exported()
    assert move_to_device_pass(program, "meta") is program
    tensors = [*program.state_dict.values(), *program.constants.values()]
    assert {str(tensor.device) for tensor in tensors} == {"meta"}
    assert all(isinstance(program.state_dict[name], nn.Parameter) for name in ("linear.weight", "linear.bias"))
    result = program.module()(cresset.ones(3, 4, device="meta"))
    assert (result.shape, str(result.device)) == ((3, 4), "meta")


def test_a_dictionary_moves_from_the_devices_it_names_only():
    program = exported()
    before = program.module()(cresset.ones(3, 4))
    moved = move_to_device_pass(program, {"cuda": "meta"})
    assert moved.module()(cresset.ones(3, 4)).tolist() == before.tolist()
    moved = move_to_device_pass(program, {"cpu": "meta"})
    assert str(moved.module()(cresset.ones(3, 4, device="meta")).device) == "meta"
