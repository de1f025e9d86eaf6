"""Heavy modules for declarations of training methods: `from gfscore.training.lazy import objectives, torch`.

They are imported when one of their names is first used; type checkers see the modules themselves.
"""

from typing import TYPE_CHECKING

from gfscore.core.lazy import LazyModule

if TYPE_CHECKING:
    import torch
    from torch.nn import functional

    from gfscore.attacks import batch_pgd, gradient_ascent
    from gfscore.training import certified, objectives
else:
    torch = LazyModule("torch")
    functional = LazyModule("torch.nn.functional")
    batch_pgd = LazyModule("gfscore.attacks.batch_pgd")
    gradient_ascent = LazyModule("gfscore.attacks.gradient_ascent")
    certified = LazyModule("gfscore.training.certified")
    objectives = LazyModule("gfscore.training.objectives")

__all__ = ["batch_pgd", "certified", "functional", "gradient_ascent", "objectives", "torch"]
