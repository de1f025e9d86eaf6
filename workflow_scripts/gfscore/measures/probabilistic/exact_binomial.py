"""Sequential test of probabilistic robustness with the calling convention of torchattacks."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Module

from gfscore.attacks.perturbations import Perturbation
from gfscore.measures.probabilistic.neighbourhoods import make_boundaries, run_tests
from gfscore.networks.batch_invariance import SAMPLES, require_invariant_in_memory
from gfscore.networks.batches import BatchedClassifier
from gfscore.networks.classifier import Classifier
from gfscore.networks.passes import watched
from gfscore.statistics.draws import Draws, seeds_of_samples
from gfscore.statistics.error_rates import SequentialTest
from gfscore.statistics.sequential_tests import ROBUST


class ExactBinomialTest:
    """Sequential binomial test of probabilistic robustness with the calling convention of torchattacks.

    `attack = ExactBinomialTest(model, perturbation=..., kappa=0.01); attack(images, labels)` returns one image for each
    input. For an input that is called robust this is the input itself. For others it is a neighbour that the model
    classifies otherwise, or the input if none was drawn.

    The usual loop classifies the returned images and counts wrong classes as successes of the attack. It then counts
    inputs that are called not robust, undecided inputs with a neighbour that is classified otherwise, and, with the
    reference `label`, misclassified inputs.

    Parameters
    ----------
    model : Module
        From images (n, C, H, W) in [0, 1] to logits; runs in eval mode, and each of its modules gets its mode back.
    perturbation : Perturbation
        Distribution of neighbours, of a function in gfscore.attacks.perturbations.
    kappa : float
        Largest tolerated share of changed neighbours.
    alpha : float
        Error probability of a call.
    test : {"anytime", "repeated_exact"}
        `anytime` keeps alpha; `repeated_exact`, as printed in the paper, does not.
    reference : {"label", "prediction"}
        What a neighbour's class is compared with.
    budget : int
        Most neighbours of an image.
    batch_size : int
        Neighbours classified at a time.
    seed : int
        Neighbours of an image are drawn by the seed and the position of the image among all images tested so far.

    Attributes
    ----------
    states : ndarray
        Results of the last call, (n,): "robust", "not_robust" or "undecided".
    changes, draws : ndarray
        Neighbours that were classified otherwise in the last call, and neighbours drawn, (n,) int64.

    Raises
    ------
    InputError
        For a budget within which no image could be called robust.
    """

    def __init__(
        self,
        model: Module,
        *,
        perturbation: Perturbation,
        kappa: float = 0.01,
        alpha: float = 0.05,
        test: str = "anytime",
        reference: str = "label",
        budget: int = 10_000,
        batch_size: int = 1024,
        seed: int = 0,
    ) -> None:
        """Prepare the test; nothing is drawn yet."""
        self.model = model
        self.perturbation = perturbation
        self.boundaries = make_boundaries(SequentialTest(kappa=kappa, alpha=alpha, name=test, budget=budget))
        self.reference = reference
        self.batch_size = batch_size
        self.seed = seed
        self.states: NDArray[np.object_] | None = None
        self.changes: NDArray[np.int64] | None = None
        self.draws: NDArray[np.int64] | None = None
        self._tested = 0

    def __call__(self, images: Tensor, labels: Tensor) -> Tensor:
        """Test images (n, C, H, W) with labels (n,) int64; returns an image for each, see the class.

        Raises InputError for a model that changes its images in place, and for logits that are random or depend on the
        other images of the batch.
        """
        # Every module has a mode of its own: a network in training mode may have layers in eval mode.
        modes = [(module, module.training) for module in self.model.modules()]
        classifier = Classifier(type(self.model).__name__, None, None, self.model.eval())
        batched = BatchedClassifier(classifier, batch_size=self.batch_size)
        images = images.detach().to(batched.device)
        seeds = seeds_of_samples(self.seed, "probabilistic", self._tested + np.arange(len(images)))
        self._tested += len(images)
        try:
            with watched(classifier):
                require_invariant_in_memory(classifier, images[:SAMPLES].cpu().numpy())
                outcome, _ = run_tests(
                    batched,
                    images,
                    labels.to(batched.device, torch.int64),
                    boundaries=self.boundaries,
                    perturbation=self.perturbation,
                    reference=self.reference,
                    draws=Draws.of(seeds, batched.device),
                )
        finally:
            for module, training in modes:
                module.training = training

        self.states = outcome.states()
        self.changes = outcome.changes.cpu().numpy()
        self.draws = outcome.draws.cpu().numpy()
        robust = (outcome.codes == ROBUST).reshape(-1, *[1] * (images.ndim - 1))
        return torch.where(robust, images, outcome.neighbours)
