"""Logits of many images in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.networks.inference import out_of_memory

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

        blocks, start = [], 0
        while start < len(images):
            try:
                blocks.append(self._forward(images[start : start + self.batch_size]))
                start += self.batch_size
            # onnxruntime's errors derive from Exception alone.
            except Exception as error:
                if self.batch_size == 1 or not out_of_memory(error):
                    raise
                self.batch_size = (self.batch_size + 1) // 2
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks)

    def _forward(self, images):
        import torch

        if self.classifier.network is None:
            return torch.from_numpy(self.classifier.logits(images.numpy()))
        with torch.no_grad():
            return self.classifier.network(images).float()
