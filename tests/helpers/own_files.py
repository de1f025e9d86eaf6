"""Files as a user has them: one network in every kind of model file, and the same images in every kind of data file.

Made of the real test data: a trained CIFAR-10 network (std_marabou_small, pixels in [0, 1]) and real CIFAR-10 images.
"""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np

NETWORK = "std_marabou_small"

DEFINITION = '''
"""A network for CIFAR-10."""

from torch import nn


def marabou():
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 4, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(576, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    )
'''
SEVERAL_OUTPUTS = (
    DEFINITION
    + '''

class Several(nn.Module):
    """The network, and what goes into its last layer."""

    def __init__(self, returned):
        super().__init__()
        self.layers = marabou()
        self.returned = returned

    def forward(self, images):
        features = self.layers[:-1](images)
        return self.returned(self.layers[-1](features), features)


def with_features():
    return Several(lambda logits, features: {"features": features, "scores": logits})


def with_probabilities():
    return Several(lambda logits, features: (logits, logits.softmax(1)))


def probabilities():
    return Several(lambda logits, features: logits.softmax(1))


def sigmoids():
    return Several(lambda logits, features: logits.sigmoid())
'''
)
"""The network with several outputs, or with others than logits, by functions of these names."""

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def real_images(data, count=500):
    """Pixels (n, 3, 32, 32) uint8 and labels (n,) of the first lossless CIFAR-10 test images."""
    with np.load(Path(data) / "cifar10/test_lossless_1017.npz") as file:
        return file["x"][:count], file["y"][:count]


def write_data(folder, data, *, count=500):
    """Write images/, images.npz, images.parquet and flat/ with labels.csv; returns pixels and labels."""
    import pandas as pd
    from PIL import Image

    x, y = real_images(data, count)
    blobs = []
    (folder / "flat").mkdir(parents=True)
    for row, (pixels, label) in enumerate(zip(x, y, strict=True)):
        inside = folder / "images" / CLASSES[label]
        inside.mkdir(parents=True, exist_ok=True)
        path = inside / f"{row:04d}.png"
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
        blobs.append(path.read_bytes())
        (folder / f"flat/{row:04d}.png").write_bytes(blobs[-1])
    np.savez(folder / "images.npz", x=x, y=y)
    names = [CLASSES[label] for label in y]
    files = [f"{row:04d}.png" for row in range(len(y))]
    pd.DataFrame({"file": files, "class": names}).to_csv(folder / "flat/labels.csv", index=False)
    _parquet(folder / "images.parquet", blobs, y)
    return x, y


def _parquet(path, blobs, labels):
    import pyarrow as pa
    import pyarrow.parquet as pq

    image = pa.array(
        [{"bytes": blob, "path": None} for blob in blobs], pa.struct({"bytes": pa.binary(), "path": pa.string()})
    )
    about = {"info": {"features": {"label": {"names": list(CLASSES), "_type": "ClassLabel"}}}}
    table = pa.table({"img": image, "label": pa.array(labels, pa.int64())})
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(about)}), path)


def write_two_classes(folder):
    """Write two-classes/ with two of the folders of images/, and names.json with the names of all ten outputs."""
    for name in CLASSES[:2]:
        shutil.copytree(folder / "images" / name, folder / "two-classes" / name)
    (folder / "names.json").write_text(json.dumps({"id2label": dict(enumerate(CLASSES))}))


def write_cifar(folder, data):
    """Write cifar10/ with the test batch as its authors publish it, of the JPEG images, whose rows are all there."""
    import io

    import pandas as pd
    from PIL import Image

    frame = pd.read_parquet(Path(data) / "cifar10/test_jpeg_10000.parquet")
    pixels = np.stack([np.asarray(Image.open(io.BytesIO(image["bytes"]))) for image in frame["image"]])
    content = {b"data": pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1), b"labels": frame["label"].tolist()}
    inside = folder / "cifar10/cifar-10-batches-py"
    inside.mkdir(parents=True)
    (inside / "test_batch").write_bytes(pickle.dumps(content, protocol=2))
    (inside / "batches.meta").write_bytes(
        pickle.dumps({b"label_names": [name.encode() for name in CLASSES]}, protocol=2)
    )


def network(data):
    """The trained network, in eval mode."""
    import torch

    space = {}
    exec(DEFINITION, space)
    made = space["marabou"]()
    weights = torch.load(Path(data) / f"cifar10/models/{NETWORK}.pth", map_location="cpu", weights_only=True)
    made.load_state_dict(dict(zip(made.state_dict(), weights.values(), strict=True)))
    return made.eval()


def binary_network(data, first="airplane", second="frog"):
    """The trained network with one output: the logit of the second class less that of the first, in eval mode."""
    import torch

    last = torch.nn.Linear(len(CLASSES), 1)
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
        last.weight[0, CLASSES.index(second)] = 1
        last.weight[0, CLASSES.index(first)] = -1
    return torch.nn.Sequential(*network(data), last).eval()


def write_models(folder, data):
    """Write the network as weights.pth, net.onnx, fixed.onnx, last.onnx, script.pt, program.pt2, with its definition.

    checkpoint.tar holds the weights as tutorials keep them, beside the state of an optimizer.
    """
    import warnings

    import torch

    folder.mkdir(parents=True, exist_ok=True)
    made = network(data)
    torch.save(made.state_dict(), folder / "weights.pth")
    optimizer = torch.optim.Adam(made.parameters()).state_dict()
    checkpoint = {"epoch": 5, "model_state_dict": made.state_dict(), "optimizer_state_dict": optimizer}
    torch.save(checkpoint, folder / "checkpoint.tar")
    (folder / "my_networks.py").write_text(DEFINITION.lstrip())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(made, torch.zeros(2, 3, 32, 32)).save(folder / "script.pt")
        shapes = ({0: torch.export.Dim("n")},)
        exported = torch.export.export(made, (torch.zeros(2, 3, 32, 32),), dynamic_shapes=shapes)
        torch.export.save(exported, folder / "program.pt2")
    for name, changes in (("net", {}), ("fixed", {"batch": 1}), ("last", {"channels_last": True})):
        write_onnx(made, folder / f"{name}.onnx", **changes)


def write_several(folder, data):
    """Write several.pth, weights of the network for the functions of several.py."""
    import torch

    weights = {f"layers.{name}": value for name, value in network(data).state_dict().items()}
    torch.save(weights, folder / "several.pth")
    (folder / "several.py").write_text(SEVERAL_OUTPUTS.lstrip())


def write_onnx(network, path, *, batch="n", channels_last=False, head=None, features=False):
    """Write the network as an ONNX graph, node by node: with an operator such as Softmax after it, and with features.

    The output of the network is called `scores`; `features`, what goes into its last layer, stands before it.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    shape = (32, 32, 3) if channels_last else (3, 32, 32)
    given = helper.make_tensor_value_info("images", TensorProto.FLOAT, [batch, *shape])
    nodes, weights, last = [], [], "images"

    def add(kind, *inputs, **attributes):
        nonlocal last
        nodes.append(helper.make_node(kind, [last, *inputs], [f"v{len(nodes)}"], **attributes))
        last = nodes[-1].output[0]

    if channels_last:
        add("Transpose", perm=[0, 3, 1, 2])
    features_of, layers = [], list(network)
    for number, layer in enumerate(layers):
        kind = type(layer).__name__
        if features and layer is layers[-1]:
            features_of.append(helper.make_tensor_value_info(last, TensorProto.FLOAT, [batch, layer.in_features]))
        names = []
        for name, value in layer.named_parameters():
            names.append(f"{number}.{name}")
            weights.append(numpy_helper.from_array(value.detach().numpy(), names[-1]))
        if kind == "Conv2d":
            add("Conv", *names, strides=list(layer.stride), kernel_shape=list(layer.kernel_size))
        elif kind == "Linear":
            add("Gemm", *names, transB=1)
        else:
            add({"ReLU": "Relu", "Flatten": "Flatten"}[kind])
    if head:
        add(head, **({} if head == "Sigmoid" else {"axis": 1}))
    nodes[-1].output[0] = "scores"
    made = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, layers[-1].out_features])
    graph = helper.make_graph(nodes, "network", [given], [*features_of, made], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def write_logits(folder, data, images, labels):
    """Write logits.npz of the network and many.npz of it and of noise around it."""
    import torch

    with torch.inference_mode():
        logits = network(data)(torch.from_numpy(images.astype(np.float32) / 255)).numpy()
    np.savez(folder / "logits.npz", logits=logits, labels=labels)
    noise = np.random.default_rng(0).normal(size=logits.shape)
    np.savez(folder / "many.npz", mine=logits, theirs=logits + noise, labels=labels)
    return logits


def write_hub(folder, data):
    """Write hub/, a folder as timm's models have on Hugging Face: a tiny network, whose last layer is fitted here."""
    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    import timm
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    made = timm.create_model("test_byobnet", num_classes=10).eval()
    x, y = real_images(data, 1017)
    mean, std = (torch.tensor(made.default_cfg[name]).reshape(3, 1, 1) for name in ("mean", "std"))
    images = (torch.from_numpy(x.astype(np.float32) / 255) - mean) / std
    with torch.inference_mode():
        features = made.forward_head(made.forward_features(images), pre_logits=True)
    centre, scale = features.mean(0), features.std(0) + 1e-6
    inputs = (features - centre) / scale
    layer = torch.nn.Linear(inputs.shape[1], 10)
    # On the second half, so that the first is new to it.
    optimiser = torch.optim.LBFGS(layer.parameters(), max_iter=60)

    def closure():
        optimiser.zero_grad()
        loss = (
            torch.nn.functional.cross_entropy(layer(inputs[500:]), torch.from_numpy(y[500:]))
            + 2e-3 * layer.weight.square().sum()
        )
        loss.backward()
        return loss

    optimiser.step(closure)
    with torch.no_grad():
        made.head.fc.weight.copy_(layer.weight / scale)
        made.head.fc.bias.copy_(layer.bias - (layer.weight / scale) @ centre)
    inside = folder / "hub"
    inside.mkdir(parents=True)
    save_file(made.state_dict(), inside / "model.safetensors")
    pretrained = {
        "input_size": [3, 32, 32], "mean": mean.flatten().tolist(), "std": std.flatten().tolist(), "interpolation": "bicubic",
        "crop_pct": 1.0, "classifier": "head.fc",
    }  # fmt: skip
    about = {
        "architecture": "test_byobnet",
        "num_classes": 10,
        "label_names": list(CLASSES),
        "pretrained_cfg": pretrained,
    }
    (inside / "config.json").write_text(json.dumps(about))


def write_vit(folder, data):
    """Write vit/, a folder as transformers' save_pretrained makes it: a tiny transformer, trained for a few passes."""
    import torch

    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    labels = dict(enumerate(CLASSES))
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96,
        id2label=labels, label2id={name: number for number, name in labels.items()},
    )  # fmt: skip
    made = transformers.ViTForImageClassification(config)
    x, y = real_images(data, 1017)
    images, targets = torch.from_numpy(x[500:].astype(np.float32) / 255 * 2 - 1), torch.from_numpy(y[500:])
    optimiser = torch.optim.AdamW(made.parameters(), lr=2e-3)
    for _ in range(25):
        for rows in torch.randperm(len(images)).split(64):
            loss = torch.nn.functional.cross_entropy(made(pixel_values=images[rows]).logits, targets[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    made.eval().save_pretrained(folder / "vit")
    about = {
        "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
        "rescale_factor": 1 / 255, "size": {"height": 32, "width": 32}, "image_processor_type": "ViTImageProcessor",
    }  # fmt: skip
    (folder / "vit/preprocessor_config.json").write_text(json.dumps(about))


def write_all(folder, data):
    """Write every kind of file."""
    images, labels = write_data(folder, data)
    write_cifar(folder, data)
    write_models(folder, data)
    write_logits(folder, data, images, labels)
    write_hub(folder, data)
    write_vit(folder, data)


if __name__ == "__main__":
    import sys

    write_all(Path(sys.argv[1]), sys.argv[2])
