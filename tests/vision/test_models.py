"""Models have torchvision's parameters, and weights are found or asked for."""

import hashlib

import pytest

import cresset
from cresset import nn
from cresset.vision import models

COUNTS = {
    "alexnet": 61_100_840,
    "convnext_base": 88_591_464,
    "convnext_large": 197_767_336,
    "convnext_small": 50_223_688,
    "convnext_tiny": 28_589_128,
    "densenet121": 7_978_856,
    "densenet161": 28_681_000,
    "densenet169": 14_149_480,
    "densenet201": 20_013_928,
    "efficientnet_b0": 5_288_548,
    "efficientnet_b1": 7_794_184,
    "efficientnet_b2": 9_109_994,
    "efficientnet_b3": 12_233_232,
    "efficientnet_b4": 19_341_616,
    "efficientnet_b5": 30_389_784,
    "efficientnet_b6": 43_040_704,
    "efficientnet_b7": 66_347_960,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032,
    "mobilenet_v3_small": 2_542_856,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnext101_32x8d": 88_791_336,
    "resnext101_64x4d": 83_455_272,
    "resnext50_32x4d": 25_028_904,
    "squeezenet1_0": 1_248_424,
    "squeezenet1_1": 1_235_496,
    "vgg11": 132_863_336,
    "vgg11_bn": 132_868_840,
    "vgg13": 133_047_848,
    "vgg13_bn": 133_053_736,
    "vgg16": 138_357_544,
    "vgg16_bn": 138_365_992,
    "vgg19": 143_667_240,
    "vgg19_bn": 143_678_248,
    "vit_b_16": 86_567_656,
    "vit_b_32": 88_224_232,
    "vit_h_14": 632_045_800,
    "vit_l_16": 304_326_632,
    "vit_l_32": 306_535_400,
    "wide_resnet101_2": 126_886_696,
    "wide_resnet50_2": 68_883_240,
}


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_the_number_of_parameters_is_the_published_one(name):
    with cresset.device("meta"):
        assert count(models.get_model(name)) == COUNTS[name]


def test_the_version_is_that_of_the_torchvision_it_follows():
    assert cresset.vision.__version__ == "0.28.0"


def test_every_model_is_counted():
    assert models.list_models() == sorted(COUNTS)


@pytest.mark.parametrize(
    "name",
    [
        "alexnet",
        "convnext_tiny",
        "densenet121",
        "efficientnet_b0",
        "mobilenet_v2",
        "mobilenet_v3_small",
        "resnet18",
        "resnext50_32x4d",
        "squeezenet1_1",
    ],
)
def test_a_model_answers_and_learns(name):
    cresset.manual_seed(0)
    model = models.get_model(name, num_classes=3)
    out = model(cresset.randn(2, 3, 64, 64))
    assert out.shape == (2, 3)
    nn.functional.cross_entropy(out, cresset.tensor([0, 2])).backward()
    grads = [parameter.grad for parameter in model.parameters()]
    assert all(grad is not None and cresset.isfinite(grad).all() for grad in grads)


def test_names_of_parameters():
    with cresset.device("meta"):
        resnet, vit, dense = (
            list(models.get_model(name).state_dict()) for name in ("resnet50", "vit_b_16", "densenet121")
        )
    assert resnet[0] == "conv1.weight" and "layer2.0.downsample.1.running_var" in resnet and resnet[-1] == "fc.bias"
    assert (
        vit[:2] == ["class_token", "conv_proj.weight"]
        and "encoder.layers.encoder_layer_0.self_attention.in_proj_weight" in vit
    )
    assert "encoder.layers.encoder_layer_11.mlp.3.bias" in vit and vit[-1] == "heads.head.bias"
    assert "features.denseblock1.denselayer2.norm1.weight" in dense and "features.transition3.conv.weight" in dense


def test_models_by_name():
    assert models.list_models(include="resnet*", exclude=["*101", "*152"]) == ["resnet18", "resnet34", "resnet50"]
    with pytest.raises(ValueError, match="did you mean resnet18"):
        models.get_model("resnet81")


def test_weights_are_an_enumeration():
    weights = models.ResNet50_Weights
    assert weights.DEFAULT is weights.IMAGENET1K_V2 and models.get_model_weights("resnet50") is weights
    assert weights.IMAGENET1K_V1.url == "https://download.pytorch.org/models/resnet50-0676ba61.pth"
    preset = weights.IMAGENET1K_V1.transforms()
    assert preset(cresset.zeros(3, 300, 400, dtype=cresset.uint8)).shape == (3, 224, 224)
    with pytest.raises(KeyError, match="IMAGENET1K_V2"):
        models.resnet50(weights="NONE_SUCH")
    with pytest.raises(TypeError, match="ResNet50_Weights"):
        models.resnet50(weights=models.ResNet18_Weights.DEFAULT)
    with pytest.raises(ValueError, match="num_classes"):
        models.resnet50(weights="DEFAULT", num_classes=3)


def test_weights_in_the_folder_are_loaded_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    cresset.manual_seed(0)
    model = models.squeezenet1_1()
    file = folder / "squeezenet1_1-b8a52dc0.pth"
    cresset.save(model.state_dict(), file)
    with pytest.raises(RuntimeError, match="b8a52dc0; the file is damaged"):
        models.squeezenet1_1(weights="DEFAULT")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    (folder / f"squeezenet1_1-{digest}.pth").write_bytes(file.read_bytes())
    monkeypatch.setitem(
        models.registry.WEIGHTS,
        "squeezenet1_1",
        models.WeightsEnum("Tiny", {"DEFAULT": (f"squeezenet1_1-{digest}.pth", 224, 256, "bilinear")}),
    )
    loaded = models.squeezenet1_1(weights="DEFAULT")
    assert all(cresset.equal(value, loaded.state_dict()[key]) for key, value in model.state_dict().items())


def test_weights_that_cannot_be_fetched_say_where_they_belong(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(models.registry, "BASE", "http://127.0.0.1:9/")
    with pytest.raises(
        RuntimeError,
        match=r"published at http://127.0.0.1:9/resnet18-f37072fd.pth; put it at .*checkpoints.resnet18-f37072fd.pth",
    ):
        models.resnet18(weights="IMAGENET1K_V1")
