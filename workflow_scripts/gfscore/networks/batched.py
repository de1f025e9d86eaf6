"""Logits of many images, so many at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.networks.inference import out_of_memory

if TYPE_CHECKING:
    import torch

    from gfscore.networks.classifier import Classifier


class BatchedClassifier:
    """A classifier that takes any number of images and passes `batch_size` at a time through the network.

    `classifier` is a Classifier, with or without gradients. A batch that does not fit into memory is
    halved, and the smaller size is kept; the logits do not depend on it but for rounding.
    """

    def __init__(self, classifier: Classifier, *, batch_size: int) -> None:
        """Keep the classifier, and find the device of its network."""
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
