"""TorchScript definitions of functions and classes of ours whose own source is not TorchScript, one topic a file.

They are made of aten operators alone, so that what is saved runs in PyTorch. `STANDS_FOR` of each file says for what:
{module: {name: definition}}, {"methods": {(class, name): definition}}, {"tensor": {method: definition}}, {"with": {what
is called: class}}, {"packed": {class of a recurrent layer: its forward for a PackedSequence}}. A parameter without an
annotation takes the type of the argument.
"""
