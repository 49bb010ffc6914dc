"""timm: architectures of several families, a forward pass and a gradient each."""

import timm
import torch

for name in (
    "resnet18",
    "vit_tiny_patch16_224",
    "convnext_atto",
    "mobilenetv3_small_050",
    "swin_tiny_patch4_window7_224",
    "mixer_s32_224",
):
    model = timm.create_model(name, pretrained=False, num_classes=5)
    out = model.eval()(torch.randn(1, 3, 224, 224))
    out.sum().backward()
    assert out.shape == (1, 5) and all(p.grad is None or p.grad.isfinite().all() for p in model.parameters()), name
