"""Where the weights of torchvision's models are published, and the pictures they expect."""

BASE = "https://download.pytorch.org/models/"

# builder -> (class of its weights, {weights: (file, side of the crop, side of the picture before it, interpolation)},
# the default)
PUBLISHED = {
    "alexnet": (
        "AlexNet_Weights",
        {
            "IMAGENET1K_V1": ("alexnet-owt-7be5be79.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "convnext_tiny": (
        "ConvNeXt_Tiny_Weights",
        {
            "IMAGENET1K_V1": ("convnext_tiny-983f1562.pth", 224, 236, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "convnext_small": (
        "ConvNeXt_Small_Weights",
        {
            "IMAGENET1K_V1": ("convnext_small-0c510722.pth", 224, 230, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "convnext_base": (
        "ConvNeXt_Base_Weights",
        {
            "IMAGENET1K_V1": ("convnext_base-6075fbad.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "convnext_large": (
        "ConvNeXt_Large_Weights",
        {
            "IMAGENET1K_V1": ("convnext_large-ea097f82.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "densenet121": (
        "DenseNet121_Weights",
        {
            "IMAGENET1K_V1": ("densenet121-a639ec97.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "densenet161": (
        "DenseNet161_Weights",
        {
            "IMAGENET1K_V1": ("densenet161-8d451a50.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "densenet169": (
        "DenseNet169_Weights",
        {
            "IMAGENET1K_V1": ("densenet169-b2777c0a.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "densenet201": (
        "DenseNet201_Weights",
        {
            "IMAGENET1K_V1": ("densenet201-c1103571.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "efficientnet_b0": (
        "EfficientNet_B0_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b0_rwightman-7f5810bc.pth", 224, 256, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "efficientnet_b1": (
        "EfficientNet_B1_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b1_rwightman-bac287d4.pth", 240, 256, "bicubic"),
            "IMAGENET1K_V2": ("efficientnet_b1-c27df63c.pth", 240, 255, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "efficientnet_b2": (
        "EfficientNet_B2_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b2_rwightman-c35c1473.pth", 288, 288, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "efficientnet_b3": (
        "EfficientNet_B3_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b3_rwightman-b3899882.pth", 300, 320, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "efficientnet_b4": (
        "EfficientNet_B4_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b4_rwightman-23ab8bcd.pth", 380, 384, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "efficientnet_b5": (
        "EfficientNet_B5_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b5_lukemelas-1a07897c.pth", 456, 456, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "efficientnet_b6": (
        "EfficientNet_B6_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b6_lukemelas-24a108a5.pth", 528, 528, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "efficientnet_b7": (
        "EfficientNet_B7_Weights",
        {
            "IMAGENET1K_V1": ("efficientnet_b7_lukemelas-c5b4e57e.pth", 600, 600, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "mobilenet_v2": (
        "MobileNet_V2_Weights",
        {
            "IMAGENET1K_V1": ("mobilenet_v2-b0353104.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("mobilenet_v2-7ebf99e0.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "mobilenet_v3_large": (
        "MobileNet_V3_Large_Weights",
        {
            "IMAGENET1K_V1": ("mobilenet_v3_large-8738ca79.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("mobilenet_v3_large-5c1a4163.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "mobilenet_v3_small": (
        "MobileNet_V3_Small_Weights",
        {
            "IMAGENET1K_V1": ("mobilenet_v3_small-047dcff4.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "resnet18": (
        "ResNet18_Weights",
        {
            "IMAGENET1K_V1": ("resnet18-f37072fd.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "resnet34": (
        "ResNet34_Weights",
        {
            "IMAGENET1K_V1": ("resnet34-b627a593.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "resnet50": (
        "ResNet50_Weights",
        {
            "IMAGENET1K_V1": ("resnet50-0676ba61.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("resnet50-11ad3fa6.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "resnet101": (
        "ResNet101_Weights",
        {
            "IMAGENET1K_V1": ("resnet101-63fe2227.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("resnet101-cd907fc2.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "resnet152": (
        "ResNet152_Weights",
        {
            "IMAGENET1K_V1": ("resnet152-394f9c45.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("resnet152-f82ba261.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "resnext50_32x4d": (
        "ResNeXt50_32X4D_Weights",
        {
            "IMAGENET1K_V1": ("resnext50_32x4d-7cdf4587.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("resnext50_32x4d-1a0047aa.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "resnext101_32x8d": (
        "ResNeXt101_32X8D_Weights",
        {
            "IMAGENET1K_V1": ("resnext101_32x8d-8ba56ff5.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("resnext101_32x8d-110c445d.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "resnext101_64x4d": (
        "ResNeXt101_64X4D_Weights",
        {
            "IMAGENET1K_V1": ("resnext101_64x4d-173b62eb.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "squeezenet1_0": (
        "SqueezeNet1_0_Weights",
        {
            "IMAGENET1K_V1": ("squeezenet1_0-b66bff10.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "squeezenet1_1": (
        "SqueezeNet1_1_Weights",
        {
            "IMAGENET1K_V1": ("squeezenet1_1-b8a52dc0.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg11": (
        "VGG11_Weights",
        {
            "IMAGENET1K_V1": ("vgg11-8a719046.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg11_bn": (
        "VGG11_BN_Weights",
        {
            "IMAGENET1K_V1": ("vgg11_bn-6002323d.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg13": (
        "VGG13_Weights",
        {
            "IMAGENET1K_V1": ("vgg13-19584684.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg13_bn": (
        "VGG13_BN_Weights",
        {
            "IMAGENET1K_V1": ("vgg13_bn-abd245e5.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg16": (
        "VGG16_Weights",
        {
            "IMAGENET1K_V1": ("vgg16-397923af.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg16_bn": (
        "VGG16_BN_Weights",
        {
            "IMAGENET1K_V1": ("vgg16_bn-6c64b313.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg19": (
        "VGG19_Weights",
        {
            "IMAGENET1K_V1": ("vgg19-dcbb9e9d.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vgg19_bn": (
        "VGG19_BN_Weights",
        {
            "IMAGENET1K_V1": ("vgg19_bn-c79401a0.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vit_b_16": (
        "ViT_B_16_Weights",
        {
            "IMAGENET1K_V1": ("vit_b_16-c867db91.pth", 224, 256, "bilinear"),
            "IMAGENET1K_SWAG_E2E_V1": ("vit_b_16_swag-9ac1b537.pth", 384, 384, "bicubic"),
            "IMAGENET1K_SWAG_LINEAR_V1": ("vit_b_16_lc_swag-4e70ced5.pth", 224, 224, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "vit_b_32": (
        "ViT_B_32_Weights",
        {
            "IMAGENET1K_V1": ("vit_b_32-d86f8d99.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vit_l_16": (
        "ViT_L_16_Weights",
        {
            "IMAGENET1K_V1": ("vit_l_16-852ce7e3.pth", 224, 242, "bilinear"),
            "IMAGENET1K_SWAG_E2E_V1": ("vit_l_16_swag-4f3808c9.pth", 512, 512, "bicubic"),
            "IMAGENET1K_SWAG_LINEAR_V1": ("vit_l_16_lc_swag-4d563306.pth", 224, 224, "bicubic"),
        },
        "IMAGENET1K_V1",
    ),
    "vit_l_32": (
        "ViT_L_32_Weights",
        {
            "IMAGENET1K_V1": ("vit_l_32-c7638314.pth", 224, 256, "bilinear"),
        },
        "IMAGENET1K_V1",
    ),
    "vit_h_14": (
        "ViT_H_14_Weights",
        {
            "IMAGENET1K_SWAG_E2E_V1": ("vit_h_14_swag-80465313.pth", 518, 518, "bicubic"),
            "IMAGENET1K_SWAG_LINEAR_V1": ("vit_h_14_lc_swag-c1eb923e.pth", 224, 224, "bicubic"),
        },
        "IMAGENET1K_SWAG_E2E_V1",
    ),
    "wide_resnet50_2": (
        "Wide_ResNet50_2_Weights",
        {
            "IMAGENET1K_V1": ("wide_resnet50_2-95faca4d.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("wide_resnet50_2-9ba9bcbe.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
    "wide_resnet101_2": (
        "Wide_ResNet101_2_Weights",
        {
            "IMAGENET1K_V1": ("wide_resnet101_2-32ee1156.pth", 224, 256, "bilinear"),
            "IMAGENET1K_V2": ("wide_resnet101_2-d733dc28.pth", 224, 232, "bilinear"),
        },
        "IMAGENET1K_V2",
    ),
}  # fmt: skip
