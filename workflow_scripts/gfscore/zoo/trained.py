"""Trained classifiers as safetensors files: weights and how to build the network, no code."""

import hashlib
import json
from pathlib import Path

from gfscore.errors import InputError
from gfscore.files import atomic
from gfscore.zoo import build_network

HEADER_KEY = "gfscore"


def save_classifier(path, network, *, metadata):
    """Write a network made by `build_network` to a safetensors file, atomically; returns its sha256 (hex).

    `metadata` is a JSON-able mapping stored beside the recipe. Equal weights and metadata give equal bytes.
    """
    from safetensors.torch import save

    # One key only: safetensors keeps its metadata in a hash map, whose order differs between runs.
    header = json.dumps({"recipe": network.recipe, "metadata": metadata}, sort_keys=True)
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    content = save(weights, metadata={HEADER_KEY: header})
    with atomic(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def load_classifier(path, *, sha256):
    """Trained classifier in eval mode on the CPU: images (n, C, H, W) in [0, 1] to logits (n, K).

    `sha256` (hex) is compared before anything is parsed. The result has `recipe` (architecture, in_channels,
    image_size, classes, arguments) and `metadata`. Raises InputError naming the file and the remedy for a
    missing file, another digest, a file not written by `save_classifier`, and weights that do not fit the
    architecture.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); train or fetch this model first") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InputError(
            f"{path}: sha256 is {found[:12]}, expected {sha256[:12]}: the file is damaged or another one; "
            "delete it, so that it is made again, or correct the digest"
        )
    header = _header(content, path)
    recipe = header["recipe"]
    network = build_network(
        recipe["architecture"],
        in_channels=recipe["in_channels"],
        image_size=recipe["image_size"],
        classes=recipe["classes"],
        **recipe["arguments"],
    )
    try:
        network.load_state_dict(load(content))
    except (RuntimeError, SafetensorError) as error:
        raise InputError(
            f"{path}: the weights do not fit architecture {recipe['architecture']!r} "
            f"({str(error).splitlines()[0]}); train the model again with this version"
        ) from error
    network.metadata = header["metadata"]
    return network.eval()


def _header(content, path):
    # safetensors: 8 bytes little-endian length of the JSON header, then the header.
    try:
        end = 8 + int.from_bytes(content[:8], "little")
        return json.loads(json.loads(content[8:end])["__metadata__"][HEADER_KEY])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: no header of a classifier trained by this workflow; name its architecture's source in "
            "config.yaml, or train the model again"
        ) from error
