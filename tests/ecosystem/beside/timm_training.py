"""A ViT-Tiny of timm with its AdamW, 6 steps on pictures of 96 x 96."""

import timm
import timm.optim
import torch


def prepare():
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, num_classes=10, img_size=96, drop_path_rate=0.1)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    pictures, labels = torch.randn(6, 8, 3, 96, 96), torch.randint(0, 10, (6, 8))

    def train():
        losses = []
        for x, y in zip(pictures, labels, strict=True):
            loss = torch.nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return train
