"""From a network and images to logits."""

from contextlib import contextmanager

import numpy as np

from gfscore.errors import InputError


def extract_logits(network, images, *, batch_size, device, threads=1):
    """Logits of every sample of an image set.

    `network` is a torch module from (n, C, H, W) float32 in [0, 1] to (n, K), used in eval mode; `images` a
    gfscore.datasets.ImageSet; `device` "cpu", "cuda" or "auto" (see `resolve_device`). When memory runs out,
    the batch is halved, down to single images. Float32 throughout: no reduced-precision multiplication on a
    GPU. Values that are not finite are passed on as they are, for check_logits to refuse. Returns
    `(sample_id, labels, logits)`: (N,) str, (N,) int32, (N, K) float32.
    """
    import torch

    network = network.to(resolve_device(device)).eval()
    blocks, size = [], batch_size
    with torch.inference_mode(), reproducible_arithmetic(threads=threads):
        for batch in images.batches(batch_size):
            # A reduced size is kept: the next batches would run out of memory likewise.
            block, size = _forward(network, batch, size)
            blocks.append(block)
    return images.sample_id, images.labels, np.concatenate(blocks)


def require_fit(network, dataset, *, source):
    """Refuse a network made for other images or classes than those of a dataset, by InputError.

    `source` is the checkpoint, named in the error; `network` has a `recipe` (see gfscore.zoo), `dataset` is
    the manifest of fetch_dataset.
    """
    recipe = network.recipe
    expected = [recipe["in_channels"], *recipe["image_size"]]
    if expected != dataset["image_shape"]:
        raise InputError(
            f"{source}: made for images of shape {expected}, but {dataset['dataset']} has "
            f"{dataset['image_shape']}; evaluate it on images of its own shape (models_of in config.yaml)"
        )
    if recipe["classes"] != len(dataset["classes"]):
        raise InputError(
            f"{source}: made for {recipe['classes']} classes, but {dataset['dataset']} declares "
            f"{len(dataset['classes'])}; correct `classes` or models_of in config.yaml"
        )


def identity_of(dataset, model, *, device):
    """Identity that a logits file repeats in its metadata: names, digests and arithmetic, str to str.

    `dataset` and `model` are the manifests of fetch_dataset and train_model; the dataset named is the one
    evaluated.
    """
    import torch

    return {
        "dataset": dataset["dataset"],
        "threat": model["threat"],
        "model": model["model"],
        "dataset_digest": dataset["digest"],
        "checkpoint_sha256": model["sha256"],
        "architecture": model["architecture"],
        "preprocessing": dataset["preprocessing"],
        "dtype": "float32",
        "device": resolve_device(device),
        "torch": str(torch.__version__),
    }


def resolve_device(device):
    """Name of the device to use: "auto" is "cuda" where there is one, else "cpu"; others stay."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


@contextmanager
def reproducible_arithmetic(*, threads=1):
    """Run torch in plain float32, with deterministic kernels, on so many threads; restore what was set.

    Another number of threads sums in another order, which training amplifies to other weights; on small
    networks one thread is also the fastest. TensorFloat-32, a GPU's default for convolutions, keeps 10 bits
    of mantissa.
    """
    import torch

    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    formats = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(threads)
    # Only a warning: some kernels have no deterministic form on a GPU.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1], warn_only=warn_only)
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = formats


def _forward(network, batch, size):
    import torch

    device = next((parameter.device for parameter in network.parameters()), "cpu")
    done, start = [], 0
    while start < len(batch):
        try:
            part = torch.from_numpy(batch[start : start + size]).to(device)
            done.append(network(part).float().cpu().numpy())
            start += size
        except RuntimeError as error:
            if size == 1 or not _out_of_memory(error):
                raise
            size = (size + 1) // 2
    return np.concatenate(done), size


def _out_of_memory(error):
    import torch

    # The CPU allocator raises a bare RuntimeError.
    return isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error)
