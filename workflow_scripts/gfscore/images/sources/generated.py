"""Samples of the workflow's own generator, as train_generator writes them."""

from gfscore.images.sources import npz

SETTINGS = None
"""The entry also describes the generator, so its keys stand in the schema itself."""


def open_source(settings, path):
    """Images x, (N, C, H, W) in [0, 1], and labels y of an .npz file; raises as gfscore.images.sources.npz."""
    return npz.open_source({**settings, "value_range": 1, "channels": "first"}, path)
