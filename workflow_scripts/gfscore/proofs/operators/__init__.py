"""Operators of networks that bounds are propagated through, one module for each family, found by itself.

A module declares `READERS`: operator of torch -> Reader, which adds to a graph what it computes. Affine operators hand
over their transpose, activations two lines around their function.
"""

from gfscore.core.discovery import declarations
from gfscore.proofs.operators.declaration import Reader

READERS: dict[object, Reader] = {}
"""How each operator of torch is read."""

for readers in declarations("gfscore.proofs.operators", "READERS").values():
    READERS.update(readers)
