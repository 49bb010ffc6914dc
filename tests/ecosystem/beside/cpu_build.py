"""Imported first. The torchvision of the registry is compiled for PyTorch's CUDA build; in its CPU build the package
imports once the operators that it describes are declared. Nothing here calls them.
"""

import torch

if "cresset" not in torch.__version__ and torch.version.cuda is None:
    declared = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
