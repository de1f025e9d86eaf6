"""Networks, generators and devices whose answers are known.

Small networks with known boundaries, or with faults; linear classifiers in files of several sources; generators of known
images; and a pretend CUDA device, which computes on the CPU but keeps the rules of a device: tensors of both devices in
one operation, a generator of the other device and numpy's view of a tensor there are errors, as they are on a GPU.
Whatever makes the host wait for the device is noted. Kernels, streams, time and memory are not imitated.
"""

import sys
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from gfscore.core.digests import sha256_of_file
from gfscore.networks import devices
from gfscore.networks.classifier import open_classifier


def linear(classes, pixels=48, *, seed=0, scale=1.0):
    """Linear classifier whose boundaries pass near the grey image."""
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(pixels, classes)
    with torch.no_grad():
        layer.weight.copy_(scale * torch.randn(classes, pixels, generator=generator))
        layer.bias.copy_(-layer.weight.sum(1) / 2 + 0.1 * scale * torch.randn(classes, generator=generator))
    return nn.Sequential(nn.Flatten(), layer)


def curved(classes, pixels=48, *, width=32, seed=0):
    """A network of one hidden layer, in eval mode."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, classes)).eval()


def grey(n, shape=(3, 4, 4), seed=1):
    """Images so far inside [0, 1] that the box does not bind."""
    return np.random.default_rng(seed).uniform(0.2, 0.8, (n, *shape)).astype(np.float32)


def predicted(network, images):
    """Classes that a network says of arrays."""
    with torch.no_grad():
        return network(torch.from_numpy(images)).argmax(1).numpy()


def margins(network, images, labels, norm):
    """Distance of each image to the nearest boundary of its label's region under `linear`; negative outside, float64."""
    weights, bias = (value.detach().double().numpy() for value in network[1].parameters())
    logits = images.reshape(len(images), -1).astype(float) @ weights.T + bias
    result = []
    for z, y in zip(logits, labels, strict=True):
        dual = np.linalg.norm(weights[y] - np.delete(weights, y, 0), ord=1 if norm == "linf" else 2, axis=1)
        result.append(np.min((z[y] - np.delete(z, y)) / dual))
    return np.array(result)


class Wrapped(nn.Module):
    """A network behind a function of images and of the network."""

    def __init__(self, network, function):
        super().__init__()
        self.network, self.function = network, function

    def forward(self, x):
        return self.function(self.network, x)


def detached(network):
    """The network without gradients of its logits."""
    return Wrapped(network, lambda network, x: network(x).detach())


def rounded(network, levels):
    """Gradient masking: pixels are rounded, so that every gradient is 0."""
    return Wrapped(network, lambda network, x: network(torch.round(levels * x) / levels))


def capped():
    """Logit 1 can reach logit 0 and no more."""

    def logits(_, x):
        pixel = x.flatten(1)[:, 0]
        return torch.stack([torch.ones_like(pixel), (2 * pixel).clamp(max=1)], dim=1)

    return Wrapped(None, logits)


def broken(network, images, value=float("nan"), *, beyond=1e-2):
    """Logits are `value` where a pixel differs from the data: only what a measure makes of them shows it."""
    data = torch.from_numpy(images).flatten(1)

    def logits(network, x):
        near = torch.cdist(x.detach().flatten(1), data).amin(1)
        return torch.where(near[:, None] > beyond, value, network(x))

    return Wrapped(network, logits)


@pytest.fixture
def one_thread():
    """Networks this small are slower on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


FLAT_IMAGES = np.random.default_rng(0).random((5, 3, 8, 8), dtype=np.float32)
FLAT_PREPROCESSING = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": None, "std": None}
"""Settings of no preprocessing."""

FLAT_DEFINITION = """
import os
import torch
from torch import nn

VALUE = 3

class Flat(nn.Module):
    def __init__(self, classes=4, side=8):
        super().__init__()
        self.linear = nn.Linear(3 * side * side, classes)

    def forward(self, x):
        return self.linear(x.flatten(1))

class Pair(Flat):
    def forward(self, x):
        return super().forward(x), x

def flat(**arguments):
    return Flat(**arguments)

def number():
    return 7

def broken():
    raise RuntimeError("no luck")
"""
"""Content of architectures/mine.py."""


def write_architectures(folder):
    """A folder of architectures, with a file outside of it that must not run."""
    (folder / "deep").mkdir(parents=True)
    (folder / "mine.py").write_text(FLAT_DEFINITION)
    (folder / "deep" / "other.py").write_text(
        "from architectures.mine import Flat\n\n\nclass Deeper(Flat):\n    pass\n"
    )
    outside = folder.parent
    (outside / "outside.py").write_text(f"open({str(outside / 'it-ran')!r}, 'w')\n")


def manifest_of(path, source, **settings):
    sha256 = sha256_of_file(path)
    common = {
        "arguments": {},
        "weights": "model",
        "trust_pickle": False,
        "sha256": None,
        **FLAT_PREPROCESSING,
        "output": None,
    }
    names = {"dataset": "z", "threat": "none", "model": "M", "architecture": settings.get("architecture", source)}
    return {**names, "source": source, "path": str(path), "sha256": sha256, "settings": {**common, **settings}}


def opened(manifest, *, classes=4):
    return open_classifier(manifest, image_shape=[3, 8, 8], classes=classes)


def write_graph(path, *, batch="n", outputs=1, dtype=None, layout=(3, 8, 8)):
    """Linear classifier of flattened images, by default float32, into 4 classes; returns its weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    dtype = dtype or TensorProto.FLOAT
    size = int(np.prod(layout))
    weights = np.random.default_rng(2).normal(size=(size, 4)).astype(np.float32)
    image = helper.make_tensor_value_info("image", dtype, [batch, *layout])
    names = ["logits", "flat"][:outputs]
    shapes = {"logits": [batch, 4], "flat": [batch, size]}
    outputs_info = [helper.make_tensor_value_info(name, dtype, shapes[name]) for name in names]
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    kind = np.int32 if dtype == TensorProto.INT32 else np.float32
    content = helper.make_graph(nodes, "g", [image], outputs_info, [numpy_helper.from_array(weights.astype(kind), "w")])
    onnx.save(helper.make_model(content, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return weights


GENERATOR_DEFINITION = """
import torch
from torch import nn


class Known(nn.Module):
    \"\"\"Images (n, 1, 2, 2) in [-1, 1]: tanh of a latent (n, 2) above, the brightness of the class below.\"\"\"

    def __init__(self, classes):
        super().__init__()
        self.brightness = nn.Parameter(torch.zeros(classes))

    def forward(self, latents, classes):
        below = self.brightness[classes][:, None].expand(-1, 2)
        return torch.cat([torch.tanh(latents), below], dim=1).reshape(-1, 1, 2, 2)


class OneHot(Known):
    def forward(self, latents, classes):
        return super().forward(latents, classes.argmax(dim=1))
"""
GENERATOR_FORMATS = ("weights", "script", "export")


def brightness(classes):
    """Values of the lower pixels, from black, -1, to white, 1."""
    return torch.linspace(-1, 1, classes)


def known_network(classes, *, name="Known"):
    """The network of these images."""
    namespace = {}
    exec(GENERATOR_DEFINITION, namespace)
    network = namespace[name](classes)
    network.load_state_dict({"brightness": brightness(classes)})
    return network.eval()


def place_generator(folder, form, *, classes=3, class_input="index"):
    """Write a generator in a format; returns the settings of it that must be stated. Paths are below the folder."""
    settings = {"latent": [2], "class_input": class_input, "output_range": [-1, 1]}
    name = {"index": "Known", "one_hot": "OneHot"}[class_input]
    network, path = known_network(classes, name=name), folder / f"generator.{'pt' if form == 'weights' else 'pt2'}"
    if form == "weights":
        (folder / "architectures").mkdir(exist_ok=True)
        (folder / "architectures/known.py").write_text(GENERATOR_DEFINITION)
        torch.save(network.state_dict(), path)
        return settings | {
            "path": str(path), "architecture": f"architectures.known:{name}", "arguments": {"classes": classes},
        }  # fmt: skip
    example = (torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))
    if class_input == "one_hot":
        example = (torch.zeros(4, 2), torch.eye(classes)[[0, 1, 2, 0]])
    if form == "script":
        torch.jit.trace(network, example).save(path)
    else:
        n = torch.export.Dim("n")
        torch.export.save(torch.export.export(network, example, dynamic_shapes=({0: n}, {0: n})), path)
    return settings | {
        "path": str(path), "architecture": None, "trust_pickle": True, "sha256": sha256_of_file(path),
    }  # fmt: skip


class Returning(nn.Module):
    """A generator that returns what a function makes of its latents and classes."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, latents, classes):
        return self.function(latents, classes)


PRETENDED_DEVICE = torch.device("cuda:0")

aten = torch.ops.aten
COPIES = (aten._to_copy.default, aten.copy_.default)
INDEXING = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default)
WAITING = {
    aten._local_scalar_dense.default: "number",
    aten.equal.default: "number",
    aten.nonzero.default: "size",
    aten.masked_select.default: "size",
    aten._unique2.default: "size",
    aten.bincount.default: "size",
    aten.repeat_interleave.Tensor: "size",
}
"""Operations whose result, or its size, the host has to know."""


@contextmanager
def pretended():
    """Pretend that there is one CUDA device. Gives the list of waits: (reason, "file:function" of gfscore) each.

    Reasons are "copy" from one device to the other, "number" read from the device, and the "size" of a selection.
    """
    waits = []
    of_cuda = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda *_: (9, 0),
        "get_arch_list": lambda: ["sm_90"],
        "mem_get_info": lambda *_: (40 << 30, 80 << 30),
        "get_rng_state": lambda *_: None,
        "set_rng_state": lambda *_: None,
    }
    with (
        mock.patch.multiple(torch.cuda, **of_cuda),
        # Else the device would be locked, and other tests would wait for it.
        mock.patch.dict("os.environ", SLURM_JOB_ID="1"),
        # Held from here on, and so counted as the cost of every later job of this process.
        mock.patch.object(devices, "GPU_SHARE", devices.GpuShare()),
        mock.patch("torch.Generator", Generator),
        mock.patch.object(torch.Tensor, "pin_memory", torch.Tensor.clone),
        _Compute(waits),
        _Translate(),
    ):
        yield waits


class OnDevice(torch.Tensor):
    """Tensor on the pretend device, `held` on the CPU; torch's compiled part takes it for one of the device meta."""

    @staticmethod
    def __new__(cls, held):
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device="meta", **layout)

    def __init__(self, held):
        self.held = held

    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda _: PRETENDED_DEVICE)
    is_cuda = property(lambda _: True)

    @classmethod
    def __torch_dispatch__(cls, operation, types, arguments=(), options=None):
        raise RuntimeError(f"{operation} on the pretend device, outside of pretended()")


# By this eagerpy, through which foolbox works, recognises a tensor.
OnDevice.__module__ = "torch"


class Generator(torch.Generator):
    """Stand-in for torch.Generator, which makes none of a device that is not there."""

    def __new__(cls, device="cpu"):
        generator = super().__new__(cls)
        generator._named = torch.device(device)
        return generator

    def __init__(self, device="cpu"):
        super().__init__()

    device = property(lambda self: self._named)


class _Translate(TorchFunctionMode):
    # Calls from Python: "cuda" becomes the device that the compiled part does not look for.

    def __torch_function__(self, function, types, arguments=(), options=None):
        options = dict(options or {})
        if function is torch.device:
            return function(*arguments, **options)
        if function is torch.Tensor.tolist:
            # torch refuses it for a subclass.
            return arguments[0].cpu().tolist()
        if "device" in options:
            options["device"] = _translated(options["device"])
        if function is torch.tensor and "device" in options:
            # The compiled part fills the numbers in by itself.
            device = options.pop("device")
            return function(*arguments, **options).to(device)
        result = function(*map(_translated, arguments), **options)
        generator = options.get("generator")
        if generator is not None and generator.device.type != result.device.type:
            raise RuntimeError(f"{function.__name__}: generator of {generator.device} for numbers on {result.device}")
        return result


def _translated(value):
    named = isinstance(value, str) and value.partition(":")[0] == "cuda"
    return torch.device("meta") if named or (isinstance(value, torch.device) and value.type == "cuda") else value


class _Compute(TorchDispatchMode):
    # Every operation below autograd, on what the tensors hold.

    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        options = options or {}
        if torch.is_inference_mode_enabled():
            # Elsewhere autograd has taken composed operations apart already.
            with self:
                result = operation.decompose(*arguments, **options)
            if result is not NotImplemented:
                return result
        tensors = [value for value in tree_leaves((arguments, options)) if isinstance(value, torch.Tensor)]
        ours = {id(value.held): value for value in tensors if isinstance(value, OnDevice)}
        device = options.get("device")
        to_device = bool(ours) if device is None else device.type == "meta"
        if operation is aten.copy_.default:
            to_device = isinstance(arguments[0], OnDevice)
        if not ours and not to_device:
            return operation(*arguments, **options)
        _require_one_device(operation, arguments, tensors)
        if reason := _reason_to_wait(operation, arguments, to_device):
            self.waits.append((reason, _place()))
        if device is not None:
            options = options | {"device": torch.device("cpu")}
        held, options = tree_map_only(OnDevice, lambda value: value.held, (arguments, options))
        result = operation(*held, **options)
        if not to_device:
            return result
        # What was changed in place stays the same tensor.
        return tree_map_only(
            torch.Tensor, lambda value: ours[id(value)] if id(value) in ours else OnDevice(value), result
        )


def _require_one_device(operation, arguments, tensors):
    # Single numbers may come from the CPU, and so may indices into what is on the device, at the price of a copy.
    spared = arguments[1] if operation in INDEXING and isinstance(arguments[0], OnDevice) else ()
    others = [value for value in tensors if value.ndim and not any(value is index for index in spared)]
    if operation not in COPIES and len({isinstance(value, OnDevice) for value in others}) > 1:
        raise RuntimeError(f"{operation}: Expected all tensors to be on the same device, found cuda:0 and cpu")


def _reason_to_wait(operation, arguments, to_device):
    if operation in COPIES:
        source = arguments[0] if operation is aten._to_copy.default else arguments[1]
        return None if isinstance(source, OnDevice) == to_device else "copy"
    if operation in INDEXING:
        indices = [value for value in arguments[1] if value is not None]
        if not all(isinstance(value, OnDevice) for value in indices):
            return "copy"
        # What a mask selects has to be counted, unless it is filled with one number.
        filled = operation is not aten.index.Tensor and arguments[2].numel() == 1
        return "size" if not filled and any(value.dtype == torch.bool for value in indices) else None
    return WAITING.get(operation)


def _place():
    frame = sys._getframe(1)
    while frame and "/workflow_scripts/gfscore/" not in frame.f_code.co_filename:
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_code.co_name}" if frame else "elsewhere"
