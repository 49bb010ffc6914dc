"""torchvision: models, detection and segmentation, the native operators, transforms v1 and v2, boxes,
datasets, pictures.
"""

import os
import tempfile

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import datasets, io, models, ops, transforms, tv_tensors
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn, maskrcnn_resnet50_fpn
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import v2

torch.manual_seed(0)
assert torchvision.__file__ and "cresset" not in torchvision.__file__

# Models: each name a family; all of them in the long form.
names = ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "efficientnet_b0", "mnasnet0_5"]
if os.environ.get("CRESSET_LONG"):
    names = [name for name in models.list_models(module=models) if not name.endswith(("_h_14", "y_128gf", "l_16"))]
for name in names:
    side = {"inception_v3": 299}.get(name, 224)
    with torch.no_grad():
        model = models.get_model(
            name, weights=None, **({"init_weights": False} if name in ("inception_v3", "googlenet") else {})
        )
        assert model.eval()(torch.randn(1, 3, side, side)).shape == (1, 1000), name
print(f"{len(names)} models")
model = models.resnet18(num_classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.nn.functional.cross_entropy(model(torch.randn(2, 3, 64, 64)), torch.tensor([1, 2])).backward()
optimizer.step()
model.eval()
assert create_feature_extractor(model, {"layer1": "a"})(torch.ones(1, 3, 64, 64))["a"].shape == (1, 64, 16, 16)
assert models.video.r3d_18(num_classes=3).eval()(torch.randn(1, 3, 4, 32, 32)).shape == (1, 3)
segmenter = models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4).eval()
assert segmenter(torch.randn(1, 3, 64, 64))["out"].shape == (1, 4, 64, 64)

# Detection.
target = {"boxes": torch.tensor([[10.0, 10, 50, 60]]), "labels": torch.tensor([1])}
detector = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=3)
losses = detector.train()([torch.rand(3, 100, 120)], [target])
sum(losses.values()).backward()
assert all(loss.isfinite() for loss in losses.values())
found = detector.eval()([torch.rand(3, 100, 120)])[0]
assert found["boxes"].shape[1] == 4 and len(found["boxes"]) == len(found["scores"])
if os.environ.get("CRESSET_LONG"):
    masks = maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=3, min_size=100, max_size=120)
    target["masks"] = torch.zeros(1, 100, 120, dtype=torch.uint8)
    sum(masks.train()([torch.rand(3, 100, 120)], [target]).values()).backward()
    assert masks.eval()([torch.rand(3, 100, 120)])[0]["masks"].dim() == 4

# Operators: values that can be worked out, and derivatives.
boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
assert ops.nms(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5).tolist() == [1, 2]
assert ops.batched_nms(boxes, torch.tensor([0.5, 0.9, 0.1]), torch.tensor([0, 1, 0]), 0.5).tolist() == [1, 0, 2]
assert abs(ops.box_iou(boxes, boxes)[0, 1].item() - 81 / 119) < 1e-6
ramp = torch.arange(8.0, dtype=torch.float64).expand(1, 4, 8, 8).clone().requires_grad_()
whole = torch.tensor([[0.0, 0, 0, 8, 8]], dtype=torch.float64)
assert ops.roi_align(ramp, whole, (1, 1), aligned=True).flatten()[0].item() == 3.5
assert ops.roi_pool(ramp, whole, (1, 1)).flatten()[0].item() == 7.0
for pool in (ops.roi_align, ops.roi_pool, ops.ps_roi_align, ops.ps_roi_pool):
    some = torch.randn(1, 4, 6, 6, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x, pool=pool: pool(x, whole * 0.6, (2, 2)), some)
weight = torch.randn(2, 4, 3, 3, dtype=torch.float64)
plain = ops.deform_conv2d(ramp, torch.zeros(1, 18, 6, 6, dtype=torch.float64), weight)
assert torch.allclose(plain, torch.nn.functional.conv2d(ramp, weight))
assert ops.sigmoid_focal_loss(torch.zeros(2), torch.tensor([0.0, 1.0])).shape == (2,)
assert ops.masks_to_boxes(torch.eye(4).reshape(1, 4, 4)).tolist() == [[0, 0, 3, 3]]
assert torch.equal(torch.ops.torchvision.nms(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5), torch.tensor([1, 2]))

# Transforms of both generations give the same.
change = v2.Compose(
    [
        v2.RandomResizedCrop(32, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.2, 0.2, 0.2),
        v2.RandomRotation(10),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.5] * 3),
    ]
)
assert change(torch.randint(0, 255, (3, 64, 64), dtype=torch.uint8)).shape == (3, 32, 32)
picture = Image.fromarray(np.arange(40 * 40 * 3, dtype=np.uint32).reshape(40, 40, 3).astype(np.uint8))
old = transforms.Compose([transforms.Resize(20), transforms.CenterCrop(16), transforms.ToTensor()])(picture)
new = v2.Compose([v2.Resize(20), v2.CenterCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])(picture)
assert torch.allclose(old, new) and old.shape == (3, 16, 16)
assert transforms.ToPILImage()(old).size == (16, 16)
for policy in (transforms.RandAugment(), transforms.AutoAugment(), v2.TrivialAugmentWide(), v2.AugMix()):
    assert policy(torch.randint(0, 255, (3, 32, 32), dtype=torch.uint8)).shape == (3, 32, 32)
boxes = tv_tensors.BoundingBoxes([[0, 0, 10, 10]], format="XYXY", canvas_size=(32, 32))
mask = tv_tensors.Mask(torch.ones(32, 32, dtype=torch.uint8))
image, boxes, mask = v2.Resize((64, 64))(tv_tensors.Image(torch.rand(3, 32, 32)), boxes, mask)
assert boxes.tolist() == [[0, 0, 20, 20]] and boxes.canvas_size == (64, 64) and mask.shape == (64, 64)
assert type(image) is tv_tensors.Image and type(image * 2) is torch.Tensor
mixed, labels = v2.MixUp(num_classes=3)(torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 0]))
assert labels.shape == (4, 3)

# Datasets and pictures on the disk.
data = datasets.FakeData(4, (3, 8, 8), transform=transforms.ToTensor())
assert next(iter(torch.utils.data.DataLoader(data, 2)))[0].shape == (2, 3, 8, 8)
with tempfile.TemporaryDirectory() as folder:
    for kind in ("cat", "dog"):
        os.makedirs(os.path.join(folder, kind))
        picture.save(os.path.join(folder, kind, "a.png"))
    tree = datasets.ImageFolder(folder, transforms.ToTensor())
    assert tree.classes == ["cat", "dog"] and tree[1][1] == 1 and tree[0][0].shape == (3, 40, 40)
    image = torch.from_numpy(np.array(picture)).permute(2, 0, 1)
    path = os.path.join(folder, "b.png")
    io.write_png(image, path)
    assert torch.equal(io.read_image(path), image) and torch.equal(io.decode_png(io.read_file(path)), image)
    flat = torch.full((3, 16, 16), 200, dtype=torch.uint8)
    io.write_jpeg(flat, os.path.join(folder, "c.jpg"), quality=95)
    assert (io.read_image(os.path.join(folder, "c.jpg")).int() - 200).abs().max() <= 2
    assert io.decode_image(io.encode_jpeg(flat), mode=io.ImageReadMode.GRAY).shape == (1, 16, 16)
    torchvision.utils.save_image(torch.rand(4, 3, 8, 8), os.path.join(folder, "grid.png"), nrow=2)
    assert torchvision.utils.make_grid(torch.rand(4, 3, 8, 8), nrow=2).shape == (3, 22, 22)
drawn = torchvision.utils.draw_bounding_boxes(image, torch.tensor([[1, 1, 9, 9]]), colors="red")
assert drawn[:, 1, 1].tolist() == [255, 0, 0]
