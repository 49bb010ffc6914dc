"""Every family of models, compiled by torch.jit.script, gives what it gives in Python."""

import pytest

import cresset
from cresset.vision import models

FAMILIES = ["alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "mobilenet_v2", "mobilenet_v3_small",
    "resnet18", "squeezenet1_1", "vgg11_bn", "vit_b_16"]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_a_scripted_model_gives_what_it_gives_in_python(name):
    cresset.manual_seed(0)
    model = getattr(models, name)().eval()
    scripted = cresset.jit.script(model)
    x = cresset.randn(1, 3, 224, 224)
    with cresset.no_grad():
        assert cresset.allclose(model(x), scripted(x), atol=1e-4)


def test_a_densenet_that_saves_memory_learns_the_same():
    gradients = []
    for memory_efficient in (False, True):
        cresset.manual_seed(0)
        model = models.DenseNet(4, (2, 2), 8, memory_efficient=memory_efficient)
        model(cresset.randn(2, 3, 32, 32)).sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    assert all(cresset.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True))
