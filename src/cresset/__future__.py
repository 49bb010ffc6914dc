"""How a module's parameters change when it is converted (`module.to`, `half()`, `load_state_dict`): as a new object, by
taking over data, or by swapping.
"""

_settings = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value):
    """Whether a conversion puts new parameters in the place of the old ones instead of changing those in place."""
    _settings["overwrite"] = value


def get_overwrite_module_params_on_conversion():
    """Whether a conversion puts new parameters in the place of the old ones.

    >>> cresset.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _settings["overwrite"]


def set_swap_module_params_on_conversion(value):
    """Whether a conversion, and load_state_dict, swap each parameter with its new form (utils.swap_tensors), so that
    the object stays and its class and dtype may change.
    """
    _settings["swap"] = value


def get_swap_module_params_on_conversion():
    """Whether a conversion swaps each parameter with its new form.

    >>> cresset.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _settings["swap"]
