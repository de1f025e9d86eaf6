"""A pretend CUDA device for machines without one: it computes on the CPU, but keeps the rules of a device.

Tensors of both devices in one operation, a generator of the other device and numpy's view of a tensor there are errors,
as they are on a GPU. Whatever makes the host wait for the device is noted. Kernels, streams, time and memory are not
imitated.
"""

import sys
from contextlib import contextmanager
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("cuda:0")

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
        "mem_get_info": lambda *_: (40 << 30, 80 << 30),
        "get_rng_state": lambda *_: None,
        "set_rng_state": lambda *_: None,
    }
    with (
        mock.patch.multiple(torch.cuda, **of_cuda),
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
    device = property(lambda _: DEVICE)
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
        if "device" in options:
            options["device"] = _translated(options["device"])
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
