"""torch.nn.quantized.dynamic: the names of torch.ao.nn.quantized.dynamic at their old place."""


def __getattr__(name):
    from cresset.ao.nn.quantized import dynamic  # upward: PyTorch shows these layers under nn as well

    return getattr(dynamic, name)
