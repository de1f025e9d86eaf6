"""From a classifier and images to logits."""

from contextlib import contextmanager

import numpy as np

from gfscore.errors import InputError
from gfscore.workflow.gpus import hold_gpu
from gfscore.zoo.classifier import Classifier, from_network


def extract_logits(classifier, images, *, batch_size, device, threads=1):
    """Logits of every sample of an image set.

    `classifier` is a gfscore.zoo.Classifier, or a torch module from (n, C, H, W) float32 in [0, 1] to (n, K), used in
    eval mode; `images` a gfscore.datasets.ImageSet; `device` "cpu", "cuda" or "auto" (see `device_of`). When memory
    runs out, the batch is halved, down to single images. Float32 throughout: no reduced-precision multiplication on a
    GPU. Values that are not finite are passed on as they are, for check_logits to refuse. Returns
    `(sample_id, labels, logits)`: (N,) str, (N,) int32, (N, K) float32.
    """
    if not isinstance(classifier, Classifier):
        classifier = from_network(classifier)
    if classifier.network is not None:
        classifier.network.to(device_of(classifier, device)).eval()
    blocks, size = [], batch_size
    with reproducible_arithmetic(threads=threads):
        for batch in images.batches(batch_size):
            # A reduced size is kept: the next batches would run out of memory likewise.
            block, size = _forward(classifier, batch, size)
            blocks.append(block)
    return images.sample_id, images.labels, np.concatenate(blocks)


def require_fit(classifier, dataset, *, source):
    """Refuse a classifier made for other images or classes than those of a dataset, by InputError.

    `source` is the checkpoint, named in the error; `classifier` is a gfscore.zoo.Classifier, `dataset` the manifest of
    fetch_dataset. What the classifier does not say is not compared.
    """
    shape, name = classifier.image_shape, dataset["dataset"]
    if shape is not None and list(shape) != dataset["image_shape"]:
        raise InputError(
            f"{source}: made for images of shape {list(shape)}, but {name} has {dataset['image_shape']}; evaluate it "
            "on images of its own shape (models_of and preprocessing in config.yaml)"
        )
    if classifier.classes is not None and classifier.classes != len(dataset["classes"]):
        raise InputError(
            f"{source}: made for {classifier.classes} classes, but {name} declares {len(dataset['classes'])}; correct "
            "`classes` or models_of in config.yaml"
        )


def identity_of(dataset, model, *, device, preprocessing=""):
    """Identity that a logits file repeats in its metadata: names, digests and arithmetic, str to str.

    `dataset` is the manifest of fetch_dataset, `model` that of train_model or fetch_checkpoint; the dataset named is
    the one evaluated. `preprocessing` is what the classifier itself does to the pixels, empty for nothing.
    """
    import torch

    return {
        "dataset": dataset["dataset"],
        "threat": model["threat"],
        "model": model["model"],
        "dataset_digest": dataset["digest"],
        "checkpoint_sha256": model["sha256"],
        "architecture": model["architecture"],
        "preprocessing": "; ".join(filter(None, [dataset["preprocessing"], preprocessing])),
        "dtype": "float32",
        "device": resolve_device(device),
        "torch": str(torch.__version__),
    }


def resolve_device(device):
    """Name of the device to use: "auto" is "cuda" where there is one, else "cpu"; others stay.

    Of several GPUs "cuda" is one that no other job holds (see gfscore.workflow.gpus).
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        hold_gpu()
    return device


def require_device(device):
    """Refuse "cuda" where there is no CUDA device, by InputError: what was to take hours would take weeks."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device cuda is asked for, but torch {torch.__version__} finds no CUDA device; run this on a machine with "
            "a GPU and a CUDA build of torch (README.md), or write device: cpu in the model's entry and be very patient"
        )
    if device == "cuda":
        hold_gpu()


def device_of(classifier, device):
    """Name of the device that a classifier runs on: the resolved one, or "cpu" where it has no torch network."""
    return "cpu" if classifier.network is None else resolve_device(device)


@contextmanager
def reproducible_arithmetic(*, threads=1):
    """Run torch in plain float32, with deterministic kernels, on so many threads; restore what was set.

    Another number of threads sums in another order, which training amplifies to other weights; on small
    networks one thread is also the fastest. TensorFloat-32, a GPU's default for convolutions, keeps 10 bits
    of mantissa.
    """
    import torch

    before = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    formats = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.set_num_threads(threads)
    # Only a warning: some kernels have no deterministic form on a GPU. torch.use_deterministic_algorithms does as much,
    # but imports the compiler first, which takes more than a second.
    torch.set_deterministic_debug_mode("warn")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_deterministic_debug_mode(before[1])
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = formats


def _forward(classifier, batch, size):
    done, start = [], 0
    while start < len(batch):
        try:
            done.append(classifier.logits(batch[start : start + size]))
            start += size
        # onnxruntime's errors derive from Exception alone.
        except Exception as error:
            if size == 1 or not out_of_memory(error):
                raise
            size = (size + 1) // 2
    return np.concatenate(done), size


def out_of_memory(error):
    """Whether an exception says that memory ran out, on the CPU or on a GPU."""
    import torch

    # The CPU allocators of torch and onnxruntime raise errors without a type of their own.
    words = ("not enough memory", "Failed to allocate memory", "bad_alloc")
    return isinstance(error, torch.OutOfMemoryError) or any(word in str(error) for word in words)
