"""torch.nn.intrinsic: the names of torch.ao.nn.intrinsic at their old place."""


def __getattr__(name):
    from cresset.ao.nn import intrinsic  # upward: PyTorch shows these layers under nn as well

    return getattr(intrinsic, name)


def __dir__():
    from cresset.ao.nn import intrinsic  # upward: PyTorch shows these layers under nn as well

    return list(intrinsic.__all__)
