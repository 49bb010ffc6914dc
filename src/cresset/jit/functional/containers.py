"""Containers of modules."""

from cresset import nn


def sequential_forward(self, input):
    for module in self:
        input = module(input)
    return input


STANDS_FOR = {"methods": {(nn.Sequential, "forward"): sequential_forward}}
