"""Classifier, the common interface of all model sources: a function from images to logits, maybe with gradients."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.networks.architecture_files import require_network
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.model_source import Manifest, module_of
from gfscore.networks.outputs import FLOAT32, Head, Images, Logits, Run, StoredPixels
from gfscore.networks.wrappers import wrap


@dataclass(frozen=True)
class Original:
    """The model that a network was converted from, run by its own library.

    Attributes
    ----------
    run : callable
        From images to logits, computed by the library `by`.
    by : str
        The library, in words.
    converter : str
        Library that converted it, in words.
    """

    run: Run
    by: str
    converter: str


@dataclass(frozen=True)
class Classifier:
    """Image classifier from (n, C, H, W) float32 in [0, 1] to logits (n, K) float32.

    Attributes
    ----------
    architecture : str
        In words.
    image_shape : tuple of int or None
        (C, H, W); None if the source does not state it.
    classes : int or None
        K; None if the source does not state it.
    network : torch.nn.Module or None
        Network of the same function, preprocessing included, so that attacks differentiate through it; None if there
        are no gradients.
    run : callable or None
        The function of a classifier without a network.
    preprocessing : str
        Preprocessing of the classifier in words, empty for none.
    original : Original or None
        What the network was converted from; None if it was not converted.
    number_type : str
        Number type of its answers. Gradients are always computed in float32 (see gfscore.networks.number_types).
    outputs : str
        What the logits are made of in words, empty for the output as it is.
    one_column : bool
        Whether that output is one number, which tells two classes apart.
    head : Head or None
        The operator after the logits that was removed.
    search : str
        Arithmetic in which attacks search (see gfscore.attacks.fast_search).
    threads : int
        Threads of the processor that it computes with.
    batch : int
        Images of one pass of a file that takes no other number: fewer are filled up. 1 where any number fits.
    """

    architecture: str
    image_shape: tuple[int, int, int] | None
    classes: int | None
    network: nn.Module | None
    run: Run | None = None
    preprocessing: str = ""
    original: Original | None = None
    number_type: str = FLOAT32
    outputs: str = ""
    one_column: bool = False
    head: Head | None = None
    search: str = FLOAT32
    threads: int = 1
    batch: int = 1

    @property
    def in_words(self) -> dict[str, str]:
        """Preprocessing, outputs and number type in words, for the identity of logits."""
        return {"preprocessing": self.preprocessing, "outputs": self.outputs, "number_type": self.number_type}

    @property
    def is_compared(self) -> bool:
        """Whether its logits are compared with those of another form of the network, on the same images."""
        return self.original is not None or (self.network is not None and self.number_type != FLOAT32)

    @property
    def device(self) -> str:
        """Torch device of the first weight of the network, "cpu" without weights."""
        if self.network is None:
            return "cpu"
        for value in chain(self.network.parameters(), self.network.buffers()):
            return str(value.device)
        return "cpu"

    def logits(self, images: Images | StoredPixels, *, device: str | None = None) -> Logits:
        """Logits of images, computed on the device of the network.

        Parameters
        ----------
        images : ndarray of float32 or uint8
            (n, C, H, W), pixels in [0, 1]; or, for a network, pixels (n, H, W, C) uint8 as they are stored, which its
            device converts.
        device : str, optional
            The device of the network. Passing it, and calling in torch's inference mode, makes small networks 4% and 1%
            faster.

        Raises
        ------
        InputError
            For a network whose output is no tensor of real numbers.
        """
        if self.network is None:
            assert self.run is not None  # without a network there is a function
            return self.run(cast(Images, images))

        with nullcontext() if torch.is_inference_mode_enabled() else torch.inference_mode():
            pixels = torch.from_numpy(images).to(device or self.device)
            logits = self.network(unit_range(pixels) if pixels.dtype == torch.uint8 else pixels)
            if not isinstance(logits, Tensor) or logits.is_complex():
                kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
                raise InputError(
                    f"the classifier ({self.architecture or type(self.network).__name__}) returns a {kind}; make it "
                    "return only a tensor of real logits (n, K)"
                )
            return logits.float().cpu().numpy()


def unit_range(pixels: Tensor) -> Tensor:
    """Images (n, C, H, W) float32 in [0, 1] from stored pixels (n, H, W, C) uint8, equal on every device."""
    # A tensor of the device: by a number of the host a GPU multiplies with its reciprocal, which rounds differently.
    white = torch.full((1,), 255.0, device=pixels.device)
    return pixels.movedim(-1, 1).float().contiguous() / white


def open_classifier(
    manifest: Manifest,
    path: Path | str | None = None,
    *,
    image_shape: Sequence[int],
    classes: int,
    threads: int = 1,
) -> Classifier:
    """Classifier described by a manifest, on the CPU in eval mode.

    The SHA-256 of every file is verified before it is parsed, and the SHA-256 of the network's code before it is
    executed.

    Parameters
    ----------
    manifest : mapping
        What train_model or fetch_checkpoint wrote.
    path : Path or str, optional
        Replaces the path of the manifest; trained models have none there.
    image_shape : sequence of int
        Shape (C, H, W) of the images of the data.
    classes : int
        Number of classes K of the data.
    threads : int
        Threads of the processor that it computes with.

    Raises
    ------
    InputError
        Naming file and remedy: for an unknown source, a file with another digest, and as the source does.
    """
    source = module_of(manifest.get("source", "trained"))
    path = path or manifest["path"]
    # For a probe, `path` is the last layer, and the files include the backbone.
    digests = {str(path): manifest["sha256"]}
    for file in manifest.get("files", []):
        digests[file["path"]] = file["sha256"]
    reads_digests = getattr(source, "READS_DIGESTS", False)
    if not reads_digests:
        for file, sha256 in digests.items():
            require_digest(file, sha256)
    require_network(manifest)

    settings = manifest.get("settings", {})
    if settings.get("image_shape", ()) is None:
        settings = {**settings, "image_shape": list(image_shape)}
    channels, height, width = image_shape
    shape = (channels, height, width)
    if reads_digests:
        classifier = source.open_classifier(
            settings, path, image_shape=shape, classes=classes, threads=threads, digests=digests
        )
    else:
        classifier = source.open_classifier(settings, path, image_shape=shape, classes=classes, threads=threads)

    classifier = replace(classifier, threads=threads)
    if settings.get("outputs"):
        return with_outputs(classifier, settings["outputs"], where=path)
    return classifier


def from_network(
    network: nn.Module,
    *,
    architecture: str = "",
    image_shape: tuple[int, int, int] | None = None,
    classes: int | None = None,
    preprocessing: str = "",
    number_type: str = FLOAT32,
    outputs: str = "",
    one_column: bool = False,
    batch: int = 1,
) -> Classifier:
    """Classifier of a torch module, which is set to eval mode.

    Parameters
    ----------
    network : torch.nn.Module
        From images (n, C, H, W) in [0, 1] to logits (n, K).
    architecture, image_shape, classes, preprocessing, number_type, outputs, one_column, batch
        See the attributes of `Classifier`.
    """
    return Classifier(
        architecture,
        image_shape,
        classes,
        network.eval(),
        preprocessing=preprocessing,
        number_type=number_type,
        outputs=outputs,
        one_column=one_column,
        batch=batch,
    )


def with_outputs(classifier: Classifier, outputs: Sequence[int], *, where: object) -> Classifier:
    """Classifier with some outputs of another.

    Parameters
    ----------
    classifier : Classifier
    outputs : sequence of int
        K' distinct indices of outputs from 0, in the order of the new classes.
    where : object
        The classifier, for messages.

    Raises
    ------
    InputError
        For an index that the classifier does not have.
    """
    if classifier.classes is not None and max(outputs) >= classifier.classes:
        raise InputError(f"{where}: has outputs 0 to {classifier.classes - 1}, not {max(outputs)}; correct `outputs`")
    indices = list(outputs)

    def columns_of(logits: Logits) -> Logits:
        return logits[:, indices]

    def forward(network: nn.Module, images: Tensor, indices: Tensor) -> Tensor:
        return network(images).index_select(1, indices)

    classifier = replace(classifier, classes=len(indices))
    return with_changed_logits(classifier, columns_of, forward, indices=torch.tensor(indices))


def with_changed_logits(
    classifier: Classifier,
    change: Callable[[Logits], Logits],
    forward: Callable[..., Tensor],
    **constants: Tensor,
) -> Classifier:
    """Classifier whose logits are a function of another classifier's logits.

    Parameters
    ----------
    classifier : Classifier
    change : callable
        The function, of arrays (n, K).
    forward : callable
        The same in torch, forward(network, images, **constants), and its constants (see `wrap`).
    """

    def changed(run: Run) -> Run:
        return lambda images: change(run(images))

    if classifier.network is not None:
        classifier = replace(classifier, network=wrap(classifier.network, forward, **constants))
    if classifier.run is not None:
        classifier = replace(classifier, run=changed(classifier.run))
    if classifier.original is not None:
        original = replace(classifier.original, run=changed(classifier.original.run))
        classifier = replace(classifier, original=original)
    return classifier
