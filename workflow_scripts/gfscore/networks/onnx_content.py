"""The content of an ONNX model in one file or several, read once: what is checked is what runs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.core.files import regular_bytes
from gfscore.networks.checkpoint_files import require_same_digest
from gfscore.networks.onnx_files import AS_ONE_FILE, require_plain_name
from gfscore.networks.outputs import (
    first_line,
)

if TYPE_CHECKING:
    import onnx
    from google.protobuf.message import Message

BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
"""Bits of the number types of which a byte holds several."""


@dataclass(frozen=True)
class OnnxModel:
    """An ONNX model as it was read.

    Attributes
    ----------
    path : Path
        The ONNX file.
    graph : onnx.ModelProto
        What it holds. Weights of the main graph that are stored in other files name them by location, offset and
        length; all other tensors have their values inside.
    content : bytes
        The graph as bytes, which a session takes beside `data`.
    data : mapping of str to bytes
        Content of the other files by name.
    """

    path: Path
    graph: onnx.ModelProto
    content: bytes
    data: Mapping[str, bytes]

    def whole_graph(self) -> onnx.ModelProto:
        """The graph with the values of all tensors inside, which may be more than one file can hold."""
        import onnx

        if not self.data:
            return self.graph
        whole = onnx.ModelProto()
        whole.CopyFrom(self.graph)
        for tensor in tensors_of(whole):
            _put_inside(tensor, self.data)
        return whole


def read_model(path: Path | str, digests: Mapping[str, str] | None = None) -> OnnxModel:
    """Read an ONNX file and the files beside it in which its tensors are stored.

    Parameters
    ----------
    path : Path or str
        The ONNX file.
    digests : mapping of str to str, optional
        SHA-256 of every file of the model by its path. They are compared with the bytes that were read, so that no file
        can be exchanged in between. Nothing is compared without.

    Returns
    -------
    OnnxModel

    Raises
    ------
    InputError
        Naming file, value and remedy, for content that is not ONNX, a file with another digest or without one, and a
        tensor that is stored in a file of another folder, a link, a file that is missing or too short, or elsewhere in
        it than its shape allows.
    """
    path = Path(path)
    if digests is not None:
        digests = {str(Path(file)): digest for file, digest in digests.items()}
    content = _bytes_of(path, digests)
    graph = parsed(content, path)
    data: dict[str, bytes] = {}
    for tensor in tensors_of(graph):
        if not tensor.external_data and not is_external(tensor):
            continue
        name = _location_of(tensor, path)
        if name not in data:
            data[name] = _data_of(tensor, path.with_name(name), path, digests)
        _settle_place(tensor, len(data[name]), path)
    if data:
        # Of weights alone a session takes the values that it is handed; others it looks for in the working directory.
        for tensor in chain(tensors_of(graph, without="graph"), tensors_of(graph.graph, without="initializer")):
            _put_inside(tensor, data)
        content = serialized(graph, path)
    return OnnxModel(path, graph, content, data)


def parsed(content: bytes, path: Path | str) -> onnx.ModelProto:
    """Graph that an ONNX file holds; InputError, naming the file `path`, for other content. No other file is opened."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.ModelProto.FromString(content)
    except DecodeError as error:
        raise InputError(
            f"{path}: is damaged or no ONNX file ({first_line(error)}); export it again as one file"
        ) from error


def serialized(graph: onnx.ModelProto, path: Path | str) -> bytes:
    """A graph as bytes; InputError, naming its file `path`, for one with more values inside than ONNX allows, 2 GB."""
    from google.protobuf.message import EncodeError

    try:
        return graph.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise InputError(
            f"{path}: holds more values than one graph can ({first_line(error)}); export it in float32, without "
            "functions and branches that hold weights"
        ) from error


def tensors_of(message: Message, *, without: str = "") -> Iterator[onnx.TensorProto]:
    """All tensors of a message: weights, attributes of nodes, bodies of If, Loop and Scan, functions.

    `without`: a field of the message whose tensors are left out.
    """
    import onnx
    from google.protobuf.message import Message

    for field, value in message.ListFields():
        if field.message_type is None or field.name == without:
            continue
        for inner in [value] if isinstance(value, Message) else value:
            if isinstance(inner, onnx.TensorProto):
                yield inner
            else:
                yield from tensors_of(inner)


def inputs_of(graph: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Inputs of a graph that are no weights, which files of early versions list among them."""
    weights = {tensor.name for tensor in graph.graph.initializer}
    return [value for value in graph.graph.input if value.name not in weights]


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor says that its values are in another file."""
    import onnx

    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _bytes_of(path: Path, digests: Mapping[str, str] | None) -> bytes:
    try:
        content = regular_bytes(path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); train or fetch this model first"
        ) from error
    _require_digest(content, path, digests)
    return content


def _data_of(tensor: onnx.TensorProto, file: Path, path: Path, digests: Mapping[str, str] | None) -> bytes:
    # Content of a file beside the ONNX file `path`.
    if not file.exists() and not file.is_symlink():
        raise InputError(
            f"{path}: its tensor {tensor.name!r} is stored in another file, {file.name}, and there is none beside it; "
            f"put {file} there, or load the model where that file is, and {AS_ONE_FILE}"
        )
    try:
        content = regular_bytes(file, follow_links=False)
    except OSError as error:
        kind = "a link" if file.is_symlink() else error.strerror or str(error)
        raise InputError(
            f"{file}: holds the tensor {tensor.name!r} of {path.name}, but cannot be read ({kind}); put a copy of the "
            "file itself in its place"
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


# ---- where a tensor is stored ----


def _location_of(tensor: onnx.TensorProto, path: Path) -> str:
    # Name of the file that a tensor is stored in.
    places = [entry.value for entry in tensor.external_data if entry.key == "location"]
    if not is_external(tensor) or len(places) != 1:
        raise InputError(
            f"{path}: its tensor {tensor.name!r} is said to be stored in another file ({', '.join(places) or 'unnamed'}"
            f"), but not in one place; load the model with the library that wrote it, and {AS_ONE_FILE}"
        )
    require_plain_name(places[0], path)
    return places[0]


def _settle_place(tensor: onnx.TensorProto, size: int, path: Path) -> None:
    # Writes location, offset and length of a tensor in the one form that a session reads, nothing else beside them.
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name, needed = entries["location"], _bytes_needed(tensor, path)
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
    for key, value in (("location", name), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def _place_of(tensor: onnx.TensorProto) -> tuple[str, int, int]:
    # Name of the file, first byte, and the one behind the last.
    entries = {entry.key: entry.value for entry in tensor.external_data}
    start = int(entries["offset"])
    return entries["location"], start, start + int(entries["length"])


def _put_inside(tensor: onnx.TensorProto, data: Mapping[str, bytes]) -> None:
    # Values of a tensor from the files that hold them; nothing where they are inside.
    if is_external(tensor):
        name, start, end = _place_of(tensor)
        tensor.raw_data = data[name][start:end]
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def _bytes_needed(tensor: onnx.TensorProto, path: Path) -> int:
    import onnx

    names: Any = onnx.TensorProto.DataType
    try:
        name = names.Name(tensor.data_type)
        if name in ("STRING", "UNDEFINED"):
            raise ValueError(name)
        bits = BITS.get(name) or 8 * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: its tensor {tensor.name!r} of type {tensor.data_type} cannot be stored in another file; export "
            "the model again"
        ) from error
    if min(tensor.dims, default=0) < 0:
        raise InputError(
            f"{path}: its tensor {tensor.name!r} has the shape {list(tensor.dims)}; export the model again"
        )
    return -(-math.prod(tensor.dims) * bits // 8)


def graph_in(content: bytes, *, where: str | Path) -> onnx.ModelProto:
    """Graph of an ONNX file's content, where one file has to hold all of it; no other file is opened.

    Raises InputError, naming the file `where`, for content that is not ONNX, and for any tensor (weights, attributes of
    nodes, bodies of If, Loop and Scan, functions) that is stored in another file.
    """
    graph = parsed(content, where)
    for tensor in tensors_of(graph):
        if tensor.external_data or is_external(tensor):
            places = [entry.value for entry in tensor.external_data if entry.key == "location"]
            raise InputError(
                f"{where}: its tensor {tensor.name!r} is stored in another file ({', '.join(places) or 'unnamed'}), "
                f"which no digest covers here; load the model where that file is, and {AS_ONE_FILE}"
            )
    return graph
