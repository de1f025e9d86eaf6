"""Entries of config.yaml for the real checkpoints of the test data, whose networks stand in tests/architectures/."""

from pathlib import Path

ARCHITECTURES = Path(__file__).parent / "architectures"

RESNET = {name: ("ResNet", {"blocks": blocks}) for name, blocks in zip(
    ("std_resnet20", "std_resnet32", "std_resnet44", "std_resnet56"), (3, 5, 7, 9), strict=True
)}  # fmt: skip
CNN_A = {"channels": [16, 32], "features": 2048, "hidden": [100]}
NARROW = {"channels": [8, 16], "features": 1024, "hidden": [100]}
DEEP = {"channels": [8, 8, 8, 8], "kernels": [4, 3, 3, 4], "features": 512, "hidden": [100]}
UNPADDED = {"channels": [16, 32], "features": 1152, "hidden": [100], "padding": 0}
MARABOU = [([8, 16], 576), ([16, 32], 1152), ([32, 64], 2304)]
NETWORKS = {
    **RESNET,
    **{f"cnn_a_{kind}": ("convnet", CNN_A) for kind in ("adv", "adv4", "adv_alt", "mix", "mix4")},
    "kw_base_2_255": ("convnet", NARROW),
    "kw_wide_2_255": ("convnet", CNN_A),
    "kw_deep_2_255": ("convnet", DEEP),
    "eran_conv_small_pgd": ("convnet", UNPADDED),
    "sigmoid_conv_small": ("convnet", UNPADDED | {"activation": "sigmoid"}),
    **{
        f"std_marabou_{size}": (
            "convnet", {"channels": channels, "features": features, "hidden": [128, 64], "padding": 0},
        )
        for size, (channels, features) in zip(("small", "medium", "large"), MARABOU, strict=True)
    },
}  # fmt: skip


def torch_entry(name, facts, folder):
    """Settings of source torch for one checkpoint, from what models.json says about it."""
    callable_name, arguments = NETWORKS[name]
    return {
        "source": "torch",
        "path": str(folder / facts["file"]),
        "url": None,
        "sha256": facts["sha256"],
        "architecture": f"architectures.cifar:{callable_name}",
        "arguments": arguments,
        "weights": "model",
        "trust_pickle": False,
        "image_shape": [3, 32, 32],
        "channel_order": "rgb",
        "value_range": 1,
        **(facts["normalisation"] or {"mean": None, "std": None}),
    }
