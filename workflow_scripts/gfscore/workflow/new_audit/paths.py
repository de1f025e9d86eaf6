"""Files, folders and names of a request: whether they are there, before torch is loaded to open them."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import LOGIT_ENDINGS
from gfscore.core.names import require_utf8
from gfscore.networks.model_source import CHECKPOINTS
from gfscore.networks.onnx_files import data_files
from gfscore.networks.sources.transformers import CONFIGURATION
from gfscore.workflow.new_audit.request import Request

PROGRAMS = (".pt2", ".torchscript")
MODEL_ENDINGS = (*CHECKPOINTS, *PROGRAMS, ".onnx")

KINDS_OF_DATA = (
    "a folder of class folders, a folder of images with a CSV file of their labels, images and labels as arrays in a "
    ".npz file or as .npy files of a folder, Parquet files with an image and a label column, or CIFAR's own files"
)

CONVERSIONS = {
    ".arrow": "a dataset of Hugging Face, written by save_to_disk; write it with dataset.to_parquet('images.parquet')",
    ".tar": "an archive; unpack it, and sort the images into class folders or list them in a CSV file",
    ".zip": "an archive; unpack it",
    ".tfrecord": "records of TensorFlow; write their content with numpy.savez('images.npz', x=images, y=labels)",
    ".pt": "tensors of torch; write them with numpy.savez('images.npz', x=images.numpy(), y=labels.numpy())",
    ".h5": "arrays of HDF5; write them with numpy.savez('images.npz', x=images, y=labels)",
    ".pkl": "a pickle, which is code; write its arrays with numpy.savez('images.npz', x=images, y=labels)",
}
"""What data in other formats are, and how to convert them, by the beginning of an ending."""

SPLITS = "dataset_dict.json"
"""File beside the splits of a dataset of Hugging Face that save_to_disk wrote."""

LIBRARIES = ("timm", "torchvision")
"""Libraries of networks that a model may be the name of."""

OPEN_CLIP = "open_clip_config.json"

NETWORK = re.compile(r"@register_model\b.*?\ndef (\w+)\(", re.DOTALL)
"""Function of a network in the source files of these libraries."""


def require_paths(request: Request) -> None:
    """Raise InputError for models, an architecture and data that are not there; no file of weights is opened."""
    for model in request.models:
        for name in model_paths(model):
            require_model(name)
    library, _, _ = (request.architecture or "").rpartition(":")
    if library.endswith(".py") and not Path(library).is_file():
        raise InputError(f"{library}: there is no such file; correct --architecture {request.architecture}")
    if request.data is not None:
        require_data(Path(request.data))
    elif not any(name.endswith(LOGIT_ENDINGS) or Path(name).is_dir() for name in request.models):
        raise InputError("images are missing: give the file or folder of the data behind the models")


def model_paths(name: str) -> Iterator[str]:
    """Files, and folders of timm and transformers, in a folder of models; any other file or name itself.

    Raises InputError for a folder without models.
    """
    path = Path(name)
    if not path.is_dir() or (path / CONFIGURATION).is_file():
        yield name
        return
    if (path / OPEN_CLIP).is_file():
        raise InputError(
            f"{path}: a network of open_clip, which has no classes but compares images with texts; export its encoder "
            "of images with the embeddings of the classes' texts as last layer, as ONNX"
        )
    # Weights of an ONNX file may have any name, also one that other models have.
    weights: set[Path] = set()
    for graph in path.glob("*.onnx"):
        weights.update(data_files(graph))
    files = []
    hubs = []
    for entry in path.iterdir():
        if entry.name.endswith((*MODEL_ENDINGS, ".npz")) and entry not in weights:
            files.append(str(entry))
        if (entry / CONFIGURATION).is_file():
            hubs.append(str(entry))
    if not files and not hubs:
        raise InputError(
            f"{path}: a folder without models; a model is a file ({' '.join(MODEL_ENDINGS)}), a folder with "
            f"{CONFIGURATION}, or a file of logits ({' '.join(LOGIT_ENDINGS)})"
        )
    yield from sorted(files)
    yield from sorted(hubs)


def require_model(name: str) -> None:
    """Raise InputError for a name that is neither a file or folder of a model nor that of a network."""
    require_utf8(name, where="model")
    path = Path(name)
    if path.is_dir():
        return
    if path.is_file():
        if not path.name.endswith((*MODEL_ENDINGS, *LOGIT_ENDINGS)):
            raise InputError(
                f"{path}: no kind of model ends in {path.suffix or 'nothing'}; known are {' '.join(MODEL_ENDINGS)}: "
                "save its weights with torch.save(model.state_dict(), 'net.pth'), or export it as ONNX"
            )
    elif name.endswith((*MODEL_ENDINGS, *LOGIT_ENDINGS)) or "/" in name.partition(":")[0]:
        raise InputError(f"{name}: there is no such file; check the path")
    else:
        _require_network(name)


def _require_network(name: str) -> None:
    # By the source files of the libraries, since importing them takes seconds.
    library, _, network = name.rpartition(":")
    # timm's tags follow a point: resnet50.a1_in1k.
    network = network.split(".")[0]
    if library not in (*LIBRARIES, ""):
        raise InputError(f"{name}: neither a file nor a network; networks are timm:NAME and torchvision:NAME")
    networks: set[str] = set()
    for library in LIBRARIES:
        package = find_spec(library)
        if package is None or package.origin is None:
            # Importing it says how it is installed.
            return
        for file in Path(package.origin).with_name("models").rglob("*.py"):
            networks.update(NETWORK.findall(file.read_text(encoding="utf-8")))
    if network in networks:
        return
    near = get_close_matches(network, sorted(networks))
    hint = f"did you mean {' or '.join(near)}?" if near else "check the path"
    raise InputError(f"{name}: no such file, and no network of timm or torchvision has this name; {hint}")


def no_data(path: Path, files: Iterable[Path]) -> InputError:
    """Error for a file, or a folder of these files, that are no data, with how to convert the first that is known."""
    for file in files:
        for ending, words in CONVERSIONS.items():
            if any(suffix.startswith(ending) for suffix in file.suffixes):
                return InputError(f"{file}: {words}")
    return InputError(f"{path}: no data; data are {KINDS_OF_DATA}")


def require_data(path: Path) -> None:
    """Raise InputError for data that are not there, and for an empty folder."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder; data are {KINDS_OF_DATA}")
    if path.is_dir() and not any(path.iterdir()):
        raise InputError(f"{path}: an empty folder; data are {KINDS_OF_DATA}")
    if (path / SPLITS).is_file():
        raise InputError(
            f"{path}: splits of one of Hugging Face's datasets; give the folder of one, such as {path}/test"
        )
