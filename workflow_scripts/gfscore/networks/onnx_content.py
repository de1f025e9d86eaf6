"""The content of an ONNX model in one file or several, read once, so that the bytes checked are the bytes run."""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError, Message

from gfscore.core.errors import InputError
from gfscore.core.files import regular_bytes
from gfscore.networks.checkpoint_files import require_same_digest
from gfscore.networks.model_source import Settings
from gfscore.networks.onnx_files import AS_ONE_FILE, data_files, require_plain_name
from gfscore.networks.outputs import first_line

PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
"""Bits of the number types that are packed, several to a byte."""


@dataclass(frozen=True)
class OnnxModel:
    """An ONNX model as it was read.

    Attributes
    ----------
    path : Path
        The ONNX file.
    proto : onnx.ModelProto
        The content of that file, parsed. Weights of the main graph that are stored in other files name them by
        location, offset and length; all other tensors have their values inside.
    content : bytes
        `proto` as bytes, which a session takes together with `data`.
    data : mapping of str to bytes
        Content of the other files by name; empty for a model in one file.
    """

    path: Path
    proto: onnx.ModelProto
    content: bytes
    data: Mapping[str, bytes]

    def with_data_embedded(self) -> onnx.ModelProto:
        """The model with the values of all tensors inside, which may be more than one file can hold."""
        if not self.data:
            return self.proto
        copy = onnx.ModelProto()
        copy.CopyFrom(self.proto)
        for tensor in tensors_of(copy):
            _embed(tensor, self.data)
        return copy


def read_model(path: Path | str, digests: Mapping[str, str] | None = None) -> OnnxModel:
    """Read an ONNX file and the files of the same folder in which its tensors are stored.

    Parameters
    ----------
    path : Path or str
        The ONNX file.
    digests : mapping of str to str, optional
        SHA-256 of every file of the model by its path. They are compared with the bytes that were read, so that no file
        can be exchanged in between. Without them nothing is compared.

    Raises
    ------
    InputError
        Naming file, value and remedy: for content that is not ONNX, for a file without a digest or with another one,
        and for a tensor that is stored in a file of another folder, in a link, in a file that is missing or too short,
        or at an offset that its shape does not allow.
    """
    path = Path(path)
    if digests is not None:
        digests = {str(Path(file)): digest for file, digest in digests.items()}
    try:
        content = regular_bytes(path)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); train or fetch this model first") from error
    _require_digest(content, path, digests)
    proto = parse_model(content, path)

    data: dict[str, bytes] = {}
    for tensor in tensors_of(proto):
        if not tensor.external_data and not is_external(tensor):
            continue
        names = [entry.value for entry in tensor.external_data if entry.key == "location"]
        if not is_external(tensor) or len(names) != 1:
            files = ", ".join(names) or "unnamed"
            raise InputError(
                f"{path}: its tensor {tensor.name!r} is said to be stored in another file ({files}"
                f"), but not in one place; load the model with the library that wrote it, and {AS_ONE_FILE}"
            )
        name = names[0]
        require_plain_name(name, path)
        if name not in data:
            data[name] = _data_bytes(tensor, path.with_name(name), path, digests)
        _normalise_external_data(tensor, len(data[name]), path)

    if data:
        # onnxruntime takes from memory only the data of weights of the main graph; it would read the others from disk.
        other_tensors = chain(tensors_of(proto, without="graph"), tensors_of(proto.graph, without="initializer"))
        for tensor in other_tensors:
            _embed(tensor, data)
        content = serialize_model(proto, path)
    return OnnxModel(path, proto, content, data)


def external_files(path: Path | str) -> list[Settings]:
    """Files with external data of an ONNX file, as `files_of` lists files: with path, without url and digest.

    Raises InputError as `read_model` does, before the digest of any of them is recorded.
    """
    read_model(path)
    return [{"path": str(file), "url": None, "sha256": None} for file in data_files(path)]


def parse_model(content: bytes, path: Path | str) -> onnx.ModelProto:
    """Model that an ONNX file holds; no other file is opened.

    Raises InputError, naming the file `path`, for content that is not ONNX.
    """
    try:
        return onnx.ModelProto.FromString(content)
    except DecodeError as error:
        raise InputError(
            f"{path}: is damaged or no ONNX file ({first_line(error)}); export it again as one file"
        ) from error


def serialize_model(model: onnx.ModelProto, path: Path | str) -> bytes:
    """A model as bytes.

    Raises InputError, naming its file `path`, for a model with more values inside than ONNX allows (2 GB).
    """
    try:
        return model.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise InputError(
            f"{path}: holds more values than one graph can ({first_line(error)}); export it in float32, without "
            "functions and branches that hold weights"
        ) from error


# Messages of a model


def messages_of(message: Message, *, without: str = "") -> Iterator[Message]:
    """All messages within a message of protocol buffers, at any depth.

    `without` names a field of the message that is passed over.
    """
    for field, value in message.ListFields():
        if field.message_type is None or field.name == without:
            continue
        members = [value] if isinstance(value, Message) else value
        for member in members:
            yield member
            yield from messages_of(member)


def tensors_of(message: Message, *, without: str = "") -> Iterator[onnx.TensorProto]:
    """All tensors of a message: weights, attributes of nodes, bodies of If, Loop and Scan, functions.

    `without` names a field of the message whose tensors are passed over.
    """
    for member in messages_of(message, without=without):
        if isinstance(member, onnx.TensorProto):
            yield member


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Inputs of a model without the weights, which early versions of ONNX list among the inputs."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor says that its values are in another file."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


# Reading of the files


def _data_bytes(tensor: onnx.TensorProto, file: Path, path: Path, digests: Mapping[str, str] | None) -> bytes:
    if not file.exists() and not file.is_symlink():
        raise InputError(
            f"{path}: its tensor {tensor.name!r} is stored in another file, {file.name}, and there is none beside it; "
            f"put {file} there, or load the model where that file is, and {AS_ONE_FILE}"
        )
    try:
        content = regular_bytes(file, follow_links=False)
    except OSError as error:
        reason = "a link" if file.is_symlink() else error.strerror or str(error)
        raise InputError(
            f"{file}: holds the tensor {tensor.name!r} of {path.name}, but cannot be read ({reason}); put a copy of "
            "the file itself in its place"
        ) from error
    _require_digest(content, file, digests)
    return content


def _require_digest(content: bytes, file: Path, digests: Mapping[str, str] | None) -> None:
    if digests is None:
        return
    expected = digests.get(str(file))
    if expected is None:
        raise InputError(
            f"{file}: is not among the files that were checked when this model was fetched; run the same command again"
        )
    require_same_digest(hashlib.sha256(content).hexdigest(), expected, path=file)


# Where a tensor is stored


def _external_entries(tensor: onnx.TensorProto) -> dict[str, str]:
    # Location, offset and length by name.
    return {entry.key: entry.value for entry in tensor.external_data}


def _normalise_external_data(tensor: onnx.TensorProto, size: int, path: Path) -> None:
    # Replaces the entries by location, offset and length in the form that onnxruntime reads.
    entries = _external_entries(tensor)
    name = entries["location"]
    needed = _byte_count(tensor, path)
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", str(needed)))
    except ValueError as error:
        raise InputError(
            f"{path}: the place of its tensor {tensor.name!r} in {name} is no number ({error}); export the model again"
        ) from error

    if length != needed:
        raise InputError(
            f"{path}: its tensor {tensor.name!r} has {length:,} bytes in {name}, but its shape {list(tensor.dims)} "
            f"needs {needed:,}; export the model again"
        )
    if offset < 0 or offset + length > size:
        raise InputError(
            f"{path.with_name(name)}: has {size:,} bytes, but the tensor {tensor.name!r} of {path.name} takes bytes "
            f"{offset:,} to {offset + length:,}: cut off, or of another model; copy both files again, or export the "
            "model again"
        )

    del tensor.external_data[:]
    tensor.external_data.add(key="location", value=name)
    tensor.external_data.add(key="offset", value=str(offset))
    tensor.external_data.add(key="length", value=str(length))


def _embed(tensor: onnx.TensorProto, data: Mapping[str, bytes]) -> None:
    # Copies the values of an external tensor into it.
    if not is_external(tensor):
        return
    entries = _external_entries(tensor)
    start = int(entries["offset"])
    end = start + int(entries["length"])
    tensor.raw_data = data[entries["location"]][start:end]
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")


def _byte_count(tensor: onnx.TensorProto, path: Path) -> int:
    try:
        name = onnx.TensorProto.DataType.Name(tensor.data_type)
        if name in ("STRING", "UNDEFINED"):
            raise ValueError(name)
        bits = PACKED_BITS.get(name) or 8 * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: its tensor {tensor.name!r} of type {tensor.data_type} cannot be stored in another file; export "
            "the model again"
        ) from error
    if min(tensor.dims, default=0) < 0:
        raise InputError(
            f"{path}: its tensor {tensor.name!r} has the shape {list(tensor.dims)}; export the model again"
        )
    # Rounded up to full bytes.
    return (math.prod(tensor.dims) * bits + 7) // 8
