"""Planning of inference: its settings, the threads of a network, and whether a GPU pays for a job.

Decided from recorded numbers, never from the clock. The constants are measured ones, of one machine: an H100, and one
core of its processor. So a job is given the same device in every run, on every machine with a GPU that holds it.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, ImagesAtOnce
from gfscore.networks.model_source import Manifest

SMALL_CHECKPOINT = 4_000_000
"""Size of a checkpoint in bytes (a million float32 weights) up to which several threads slow down a network."""

LARGE_NETWORK_THREADS = 4
"""Threads of a larger network."""

WHOLE = 100
"""Percent of one GPU."""

FLOAT_BYTES = 4

START_SECONDS = 3.8
"""Seconds that a job on the GPU takes before its first useful pass, in addition to the seconds of a job on the CPU."""

MULTIPLICATIONS_PER_SECOND = 44e9
"""Of one core: 1,083 forward passes of ResNet-20 a second, of 41 million multiplications each."""

GPU_SECONDS_PER_FORWARD = 1e-5
"""Least seconds of an image's forward pass on a GPU: launching the kernels of a batch takes that long per image."""

PIXELS_PER_USE, MOST_USES = 7, 160
"""A convolution uses a weight once for every position of its output. Over a network that is once for each 7 pixels
(ResNet-20 and WideResNet-28-10 at 32 x 32: 6.8 and 7.1), and not more often than 160 times (ResNet-50 at 224 x 224)."""

CONTEXT_MB = 700
"""Memory of CUDA and its libraries in every process, in megabytes."""

ACTIVATIONS = 60
"""Activations that a backward pass needs at most, in units of sqrt(weights x pixels): DenseNet-121, MobileNetV2 and
WideResNet-70-16 keep 52, 47 and 39, WideResNet-28-10 and ResNet-20 24, ResNet-50 19, ViT-B/16 13, ResNet-18 7."""

FORWARD_SHARE = 0.1
"""Share of these activations that is in memory at a time without gradients."""


class InferenceSettings(Closed):
    """Settings of inference."""

    batch_size: ImagesAtOnce = Field(
        256,
        description="Images per batch of all measures that perturb images, halved when memory runs out; no random draw "
        "depends on it. extract_logits chooses its own.",
    )
    precision: Literal["float32", "tf32", "bfloat16"] = Field(
        "float32",
        description="Arithmetic of extract_logits only; unless float32, its deviation is recorded in the logits file.",
    )
    search: Literal["auto", "float32", "tf32", "bfloat16"] = Field(
        "auto",
        description="Arithmetic in which attacks search; what they find counts only if the network confirms it in "
        "float32. auto: tf32 on a GPU that has it, else float32.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Device of the models: auto for a GPU where there is one and it saves more time than it takes to "
        "start, cpu, or cuda, which fails without a GPU. Trainings name their own.",
    )


# Threads


def threads_for(manifest: Manifest, path: Path | str | None = None) -> int:
    """Threads for the network of a manifest; `path` replaces the path in the manifest (see open_classifier)."""
    return threads_for_size(checkpoint_size(manifest, path))


def checkpoint_size(manifest: Manifest, path: Path | str | None = None) -> int:
    """Size in bytes of the files of a manifest's network; `path` replaces the path in the manifest.

    The main file of a fetched checkpoint, which is also among its `files`, counts twice: results depend on the number
    of threads, so that their number must not change between versions.
    """
    files = [path or manifest["path"]]
    for file in manifest.get("files", []):
        files.append(file["path"])
    return sum(Path(file).stat().st_size for file in files if Path(file).is_file())


def threads_for_size(size: int) -> int:
    """Threads for a checkpoint of `size` bytes.

    They depend on the size alone, so that values do not depend on the machine: the number of threads changes the order
    of sums.
    """
    return 1 if size <= SMALL_CHECKPOINT else LARGE_NETWORK_THREADS


# Devices


@dataclass(frozen=True)
class Network:
    """Size of a network and of its images.

    Attributes
    ----------
    size : int
        Bytes of the checkpoint.
    image_shape : tuple of int
        Shape (C, H, W) of the images that the network is shown.
    """

    size: int
    image_shape: tuple[int, ...]

    @property
    def weights(self) -> float:
        """Number of weights, in float32."""
        return self.size / FLOAT_BYTES

    @property
    def pixels(self) -> int:
        """Height times width."""
        return math.prod(self.image_shape[1:])

    @property
    def cpu_seconds_per_forward(self) -> float:
        """Seconds of one image's forward pass, on as many cores as the network has threads."""
        uses = min(self.pixels / PIXELS_PER_USE, MOST_USES)
        return self.weights * uses / MULTIPLICATIONS_PER_SECOND / threads_for_size(self.size)


def gpu_pays(network: Network, forwards: float) -> bool:
    """Whether a GPU saves more time in a job than it takes to start.

    Parameters
    ----------
    network : Network
    forwards : float
        Forward passes of single images that the job makes at most, a gradient counted as two more.
    """
    saved_seconds = forwards * (network.cpu_seconds_per_forward - GPU_SECONDS_PER_FORWARD)
    return saved_seconds > START_SECONDS


def memory_mb(network: Network, batch_size: int, *, gradients: bool) -> int:
    """Memory of a GPU that a job takes, in megabytes: CUDA, weights, and activations and images of one batch."""
    share = 1 if gradients else FORWARD_SHARE
    activations = ACTIVATIONS * share * math.sqrt(network.weights * network.pixels)
    images = 2 * math.prod(network.image_shape)
    batch_bytes = batch_size * FLOAT_BYTES * (activations + images)
    return math.ceil(CONTEXT_MB + (3 * network.size + batch_bytes) / 1e6)


def percent_of(memory: int, gpu_memory: int | None) -> int:
    """Percent of a GPU that a job's memory is, 1 to 100; 100 of a GPU of unknown memory.

    `memory` and `gpu_memory` are in megabytes.
    """
    if not gpu_memory:
        return WHOLE
    percent = math.ceil(WHOLE * memory / gpu_memory)
    return min(WHOLE, max(1, percent))
