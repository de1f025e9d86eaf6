"""Logits of many images in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.networks.inference import in_batches

if TYPE_CHECKING:
    import torch

    from gfscore.networks.classifier import Classifier


class BatchedClassifier:
    """A classifier of any number of images that passes at most `batch_size` at a time through the network.

    `classifier` is a Classifier, with or without gradients. If memory runs out, the batch size is halved for good; the
    logits depend on it only by rounding.
    """

    def __init__(self, classifier: Classifier, *, batch_size: int) -> None:
        """`batch_size`: images per pass."""
        import torch

        self.classifier, self.batch_size = classifier, batch_size
        self.device = torch.device(classifier.device)

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """Logits (n, K) float32 of a tensor of images (n, C, H, W), on the device; no gradients."""
        import torch

        blocks, self.batch_size = in_batches(self._forward, images, self.batch_size)
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks)

    def _forward(self, images):
        import torch

        if self.classifier.network is None:
            return torch.from_numpy(self.classifier.logits(images.numpy()))
        with torch.no_grad():
            return self.classifier.network(images).float()
