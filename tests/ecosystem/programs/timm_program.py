"""timm: architectures of many families: forward, a training step, features. CRESSET_LONG=1: 50 of them."""

import os

import timm
import timm.data
import timm.optim
import timm.scheduler
import timm.utils
import torch

NAMES = """
resnet18 vit_tiny_patch16_224 convnext_atto mobilenetv3_small_050 efficientnet_b0 swin_tiny_patch4_window7_224
mixer_s32_224 regnetx_002
""".split()
MORE = """
resnet26d resnext26ts resnetv2_50x1_bit seresnet18 skresnet18 ecaresnet26t res2net50_14w_8s densenet121 dpn48b
vgg11 inception_v3 xception41 mobilenetv1_100 mobilenetv2_050 mobilenetv4_conv_small mnasnet_small tinynet_e
lcnet_050 ghostnet_050 hardcorenas_a fbnetc_100 efficientnet_lite0 efficientnetv2_rw_t regnety_002 rexnet_100
repvgg_a0 cspresnet50 darknet53 dla34 hrnet_w18_small deit_tiny_patch16_224 cait_xxs24_224
beit_base_patch16_224 pit_ti_224 levit_128s coat_tiny crossvit_tiny_240 xcit_nano_12_p16_224 mobilevit_xxs
poolformer_s12 convmixer_768_32 gmlp_ti16_224 resmlp_12_224
""".split()
SIZES = {"inception_v3": 299, "crossvit_tiny_240": 240}

names = NAMES + MORE if os.environ.get("CRESSET_LONG") else NAMES
for name in names:
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    side = SIZES.get(name, 224)
    out = model.train()(torch.randn(2, 3, side, side))
    out = out[0] if isinstance(out, tuple) else out
    torch.nn.functional.cross_entropy(out, torch.tensor([0, 4])).backward()
    optimizer.step()
    assert out.shape == (2, 5) and out.isfinite().all(), name
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters()), name
    with torch.no_grad():
        assert model.eval()(torch.randn(1, 3, side, side)).shape == (1, 5), name
        assert model.forward_features(torch.randn(1, 3, side, side)) is not None, name
print(f"{len(names)} architectures")

features = timm.create_model("resnet18", features_only=True, out_indices=(1, 3))
assert [f.shape[1] for f in features(torch.randn(1, 3, 64, 64))] == [64, 256]
mixed, soft = timm.data.Mixup(mixup_alpha=0.5, num_classes=5)(torch.randn(2, 3, 8, 8), torch.tensor([1, 3]))
assert mixed.shape == (2, 3, 8, 8) and torch.allclose(soft.sum(1), torch.ones(2))
average = timm.utils.ModelEmaV2(features, decay=0.5)
average.update(features)
make = timm.optim.create_optimizer_v2(features, opt="lamb", lr=0.1)
schedule, _ = timm.scheduler.create_scheduler_v2(make, sched="cosine", num_epochs=5, warmup_epochs=1)
schedule.step(3)
assert 0 < make.param_groups[0]["lr"] < 0.1
