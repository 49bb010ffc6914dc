"""torch.nn.qat: the names of torch.ao.nn.qat at their old place."""


def __getattr__(name):
    from cresset.ao.nn import qat  # upward: PyTorch shows these layers under nn as well

    return getattr(qat, name)


def __dir__():
    from cresset.ao.nn import qat  # upward: PyTorch shows these layers under nn as well

    return list(qat.__all__)
