"""Checkpoints: how a whole file is made, and what is done to read it."""

import numpy as np

from faults.user_files import CLASSES, IDENTITY

PIXELS = {"channel_order": "rgb", "value_range": 1, "mean": None, "std": None}
TIMM = {
    "architecture": "test_vit", "arguments": {"img_size": 32}, "image_shape": [3, 32, 32], "weights": "model",
    "trust_pickle": False, "sha256": None, **PIXELS,
}  # fmt: skip


def network():
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(4, len(CLASSES))


def pt(layout):
    def make(folder):
        import torch

        content = {"state_dict": network().state_dict(), "epoch": 3, "name": "made"}
        torch.save(content, folder / "weights.pt", _use_new_zipfile_serialization=layout == "zip")
        return folder / "weights.pt"

    return make


def safetensors(folder):
    from safetensors.torch import save_file

    save_file(network().state_dict(), folder / "weights.safetensors")
    return folder / "weights.safetensors"


def read_weights(path):
    """As the source torch does, but for the digest, which would refuse every damage."""
    import torch

    from gfscore.networks.checkpoint_files import require_checkpoint
    from gfscore.networks.checkpoints import load_checkpoint, load_weights, weights_of

    require_checkpoint(path)
    weights = weights_of(load_checkpoint({"trust_pickle": False, "sha256": None}, path), path, which="model")
    assert load_weights(network(), weights, path)(torch.zeros(1, 4)).shape == (1, len(CLASSES))


def trained(folder):
    from gfscore.networks.architectures import build_network
    from gfscore.networks.trained import save_classifier

    made = build_network("small_convnet", in_channels=3, image_size=[8, 8], classes=len(CLASSES), width=2)
    save_classifier(folder / "trained.safetensors", made, metadata=IDENTITY)
    return folder / "trained.safetensors"


def read_trained(path):
    from gfscore.core.digests import sha256_of_file
    from gfscore.networks.classifier import open_classifier

    manifest = {"sha256": sha256_of_file(path)}
    classifier = open_classifier(manifest, path, image_shape=(3, 8, 8), classes=len(CLASSES))
    assert classifier.logits(np.zeros((2, *classifier.image_shape), np.float32)).shape == (2, classifier.classes)


def timm_weights(folder):
    from helpers.configurations import place_transformer

    return folder / place_transformer(folder, "vit", classes=len(CLASSES))["path"]


def read_timm(path):
    from gfscore.networks.timm_models import open_classifier

    shape = (3, 32, 32)
    classifier = open_classifier(TIMM, path, image_shape=shape, classes=len(CLASSES), threads=1)
    assert classifier.logits(np.zeros((2, *shape), np.float32)).shape == (2, len(CLASSES))


def probe_head(folder):
    import torch
    from safetensors.torch import save_file

    backbone = timm_weights(folder)
    torch.manual_seed(0)
    save_file(torch.nn.Linear(64, len(CLASSES)).state_dict(), backbone.with_name("head.safetensors"))
    return backbone.with_name("head.safetensors")


def read_probe(path):
    from gfscore.networks.probe import open_classifier

    shape, settings = (3, 32, 32), TIMM | {"path": path.with_name("vit.safetensors")}
    classifier = open_classifier(settings, path, image_shape=shape, classes=len(CLASSES), threads=1)
    assert classifier.logits(np.zeros((2, *shape), np.float32)).shape == (2, classifier.classes)


def onnx_graph(folder):
    from helpers.configurations import place_graph

    return folder / place_graph(folder, "graph", image_shape=(3, 8, 8), classes=len(CLASSES))["path"]


def read_onnx(path):
    from gfscore.networks.onnx_models import open_classifier

    settings = {"output": None, "image_shape": [3, 8, 8], **PIXELS}
    classifier = open_classifier(settings, path, image_shape=(3, 8, 8), classes=len(CLASSES), threads=1)
    assert classifier.logits(np.zeros((2, 3, 8, 8), np.float32)).shape == (2, classifier.classes)
