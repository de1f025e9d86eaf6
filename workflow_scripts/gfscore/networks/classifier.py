"""Classifier, the common interface of all model sources: a function from images to logits, maybe with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.outputs import FLOAT32
from gfscore.networks.wrappers import around

if TYPE_CHECKING:
    import torch

    from gfscore.networks.outputs import Head
from collections.abc import Mapping
from pathlib import Path

from gfscore.networks.architecture_files import require_network
from gfscore.networks.checkpoint_files import require_digest
from gfscore.networks.model_source import module_of


@dataclass(frozen=True)
class Original:
    """What a network was converted from: `run` by the library `by`, from images to logits; `converter` in words."""

    run: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    by: str
    converter: str


@dataclass(frozen=True)
class Classifier:
    """Image classifier from (n, C, H, W) float32 in [0, 1] to logits (n, K) float32.

    `architecture` in words; `image_shape` (C, H, W) and `classes` K, None if the source does not state them; `network`
    a torch module of the same function, preprocessing included, so that attacks differentiate through it, or None if
    there are no gradients; `run` the function if there is no network; `preprocessing` the classifier's preprocessing in
    words, empty for none; `original` what the network was converted from, None if it was not; `number_type` that of
    its answers, where gradients are always those of float32 (see gfscore.networks.number_types); `outputs` what the
    logits are made of in words, empty for the output as it is; `one_column`: whether that is one number, which tells
    two classes apart; `head` the operator after the logits that was left out, if any; `search` the arithmetic in which
    attacks search (see gfscore.attacks.search).
    """

    architecture: str
    image_shape: tuple[int, int, int] | None
    classes: int | None
    network: torch.nn.Module | None
    run: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = None
    preprocessing: str = ""
    original: Original | None = None
    number_type: str = FLOAT32
    outputs: str = ""
    one_column: bool = False
    head: Head | None = None
    search: str = "float32"

    @property
    def in_words(self) -> dict[str, str]:
        """What is done to pixels and to outputs, and the number type, for the identity of logits."""
        return {"preprocessing": self.preprocessing, "outputs": self.outputs, "number_type": self.number_type}

    @property
    def device(self) -> str:
        """Torch device of the first weight of the network, "cpu" without weights."""
        values = () if self.network is None else chain(self.network.parameters(), self.network.buffers())
        return next((str(value.device) for value in values), "cpu")

    def logits(self, images: NDArray[np.float32], *, device: str | None = None) -> NDArray[np.float32]:
        """Logits (n, K) float32 of images (n, C, H, W) float32 in [0, 1], computed on the device of the network.

        Raises InputError for a network whose output is no tensor of real numbers. Passing the known `device`, and
        calling in torch's inference mode, makes small networks 4% and 1% faster.
        """
        if self.network is None:
            assert self.run is not None  # without a network there is a function
            return self.run(images)
        import torch

        with nullcontext() if torch.is_inference_mode_enabled() else torch.inference_mode():
            logits = self.network(torch.from_numpy(images).to(device or self.device))
            if not isinstance(logits, torch.Tensor) or logits.is_complex():
                kind = logits.dtype if isinstance(logits, torch.Tensor) else type(logits).__name__
                raise InputError(
                    f"the classifier ({self.architecture or type(self.network).__name__}) returns a {kind}; make it "
                    "return only a tensor of real logits (n, K)"
                )
            return logits.float().cpu().numpy()


def from_network(
    network: torch.nn.Module,
    *,
    architecture: str = "",
    image_shape: tuple[int, int, int] | None = None,
    classes: int | None = None,
    preprocessing: str = "",
    number_type: str = FLOAT32,
    outputs: str = "",
    one_column: bool = False,
) -> Classifier:
    """Classifier of a torch module from images (n, C, H, W) in [0, 1] to logits (n, K), which is set to eval mode."""
    return Classifier(
        architecture,
        image_shape,
        classes,
        network.eval(),
        preprocessing=preprocessing,
        number_type=number_type,
        outputs=outputs,
        one_column=one_column,
    )


def with_outputs(classifier: Classifier, outputs: Sequence[int], *, where: object) -> Classifier:
    """Classifier with these outputs of another, K' distinct indices from 0, in this order.

    Raises InputError, naming `where`, for an index that it has not.
    """
    import torch

    if classifier.classes is not None and max(outputs) >= classifier.classes:
        raise InputError(f"{where}: has outputs 0 to {classifier.classes - 1}, not {max(outputs)}; correct `outputs`")
    network, run, original, indices = classifier.network, classifier.run, classifier.original, list(outputs)

    def selected(of: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> Callable[..., NDArray[np.float32]]:
        return lambda images: of(images)[:, indices]

    return replace(
        classifier,
        classes=len(indices),
        network=network and around(network, _select, indices=torch.tensor(indices)),
        run=run and selected(run),
        original=original and replace(original, run=selected(original.run)),
    )


def _select(network, images, indices):
    return network(images).index_select(1, indices)


# ---- Opening of classifiers of any source.


def open_classifier(
    manifest: Mapping[str, Any],
    path: Path | str | None = None,
    *,
    image_shape: Sequence[int],
    classes: int,
    threads: int = 1,
) -> Classifier:
    """Classifier described by a manifest of train_model, train_probe or fetch_checkpoint, on the CPU in eval mode.

    `path` replaces that of the manifest (trained models have none there); `image_shape` (C, H, W) and `classes` K are
    those of the data. The SHA-256 of every file is verified before it is parsed, and that of the network's code before
    it is executed. Raises InputError, naming file and remedy, for an unknown source, another digest, and as the source
    does.
    """
    opening = module_of(manifest.get("source", "trained"))
    path = path or manifest["path"]
    # For a probe, `path` is the head, and the files include the backbone.
    digests = {str(path): manifest["sha256"]} | {file["path"]: file["sha256"] for file in manifest.get("files", [])}
    options: dict[str, Any] = {}
    if getattr(opening, "READS_DIGESTS", False):
        options["digests"] = digests
    else:
        for file, sha256 in digests.items():
            require_digest(file, sha256)
    require_network(manifest)
    settings = manifest.get("settings", {})
    if settings.get("image_shape", ()) is None:
        settings = {**settings, "image_shape": list(image_shape)}
    classifier = opening.open_classifier(
        settings, path, image_shape=tuple(image_shape), classes=classes, threads=threads, **options
    )
    return with_outputs(classifier, settings["outputs"], where=path) if settings.get("outputs") else classifier
