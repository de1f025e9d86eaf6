"""Torch's types for annotations, in modules that do not import torch before they compute."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from torch.nn import Module
else:
    Generator = Tensor = Module = Any
