"""torch.utils.mobile_optimizer: PyTorch's passes for its interpreter on phones, which cresset does not have."""

import enum

__all__ = ["LintCode", "MobileOptimizerType", "generate_mobile_module_lints", "optimize_for_mobile"]


class LintCode(enum.Enum):
    """What is said about a module for phones."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


class MobileOptimizerType(enum.Enum):
    """PyTorch's names of the passes."""

    CONV_BN_FUSION = 1
    INSERT_FOLD_PREPACK_OPS = 2
    REMOVE_DROPOUT = 3
    FUSE_ADD_RELU = 4
    HOIST_CONV_PACKED_PARAMS = 5
    CONV_1D_TO_2D = 6
    VULKAN_AUTOMATIC_GPU_TRANSFER = 7


def optimize_for_mobile(script_module, optimization_blocklist=None, preserved_methods=None, backend="CPU"):
    """Refused: the result is for PyTorch's interpreter on phones. Export to ONNX instead; batch normalization is folded
    there, and dropout left out.
    """
    name = type(script_module).__name__
    raise NotImplementedError(
        f"optimize_for_mobile({name}): its result is for PyTorch's own interpreter on phones, which cresset does not "
        "write for; export the model with torch.onnx.export"
    )


def generate_mobile_module_lints(script_module):
    """What should be different in a module before it is put on a phone: a list of {"name", "message"}."""
    lints = []
    for name, parameter in script_module.named_parameters():
        if parameter.requires_grad:
            lints.append(
                {
                    "name": LintCode.REQUIRES_GRAD.name,
                    "message": (
                        f"Param {name} requires grad, please set torch.no_grad() to reduce memory usage and "
                        "improve computation speed during inference phase."
                    ),
                }
            )
    for name, module in script_module.named_modules():
        kind = type(module).__name__
        for code, word in ((LintCode.DROPOUT, "Dropout"), (LintCode.BATCHNORM, "BatchNorm")):
            if word in kind and module.training:
                lints.append(
                    {
                        "name": code.name,
                        "message": (
                            f"{kind} {name!r} is in training mode, please call eval() before the module is exported."
                        ),
                    }
                )
    return lints
