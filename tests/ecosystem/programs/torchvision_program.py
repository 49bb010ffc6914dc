"""torchvision: models, detection with its operators, transforms v1 and v2, boxes, datasets, features."""

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import models, transforms, tv_tensors
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import v2

assert torchvision.__file__ and "cresset" not in torchvision.__file__
model = models.resnet18(num_classes=10).eval()
assert model(torch.ones(1, 3, 64, 64)).shape == (1, 10)
assert create_feature_extractor(model, {"layer1": "a"})(torch.ones(1, 3, 64, 64))["a"].shape == (1, 64, 16, 16)

detector = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=3)
losses = detector.train()(
    [torch.rand(3, 100, 120)], [{"boxes": torch.tensor([[10.0, 10, 50, 60]]), "labels": torch.tensor([1])}]
)
sum(losses.values()).backward()
assert all(loss.isfinite() for loss in losses.values())
found = detector.eval()([torch.rand(3, 100, 120)])[0]
assert found["boxes"].shape[1] == 4 and len(found["boxes"]) == len(found["scores"])

change = v2.Compose(
    [
        v2.RandomResizedCrop(32, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.5] * 3),
    ]
)
assert change(torch.randint(0, 255, (3, 64, 64), dtype=torch.uint8)).shape == (3, 32, 32)
boxes = tv_tensors.BoundingBoxes([[0, 0, 10, 10]], format="XYXY", canvas_size=(32, 32))
assert v2.Resize((64, 64))(boxes).tolist() == [[0, 0, 20, 20]]
picture = Image.fromarray(np.zeros((40, 40, 3), np.uint8))
assert transforms.Compose([transforms.Resize(20), transforms.ToTensor()])(picture).shape == (3, 20, 20)
data = torchvision.datasets.FakeData(4, (3, 8, 8), transform=transforms.ToTensor())
assert next(iter(torch.utils.data.DataLoader(data, 2)))[0].shape == (2, 3, 8, 8)
