"""The files of an ONNX model: the graph, and the files of the same folder in which its tensors are stored.

Imports neither onnx nor numpy, since the names of these files are asked for whenever a run is planned.
"""

import mmap
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from gfscore.core.errors import InputError

MESSAGES: dict[str, dict[int, str]] = {
    "ModelProto": {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"},
    "TrainingInfoProto": {1: "GraphProto", 2: "GraphProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "FunctionProto": {7: "NodeProto", 11: "AttributeProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: "TensorProto",
        6: "GraphProto",
        10: "TensorProto",
        11: "GraphProto",
        22: "SparseTensorProto",
        23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
    "TensorProto": {13: "StringStringEntryProto"},
    "StringStringEntryProto": {},
}
"""Fields of ONNX's messages that lead to tensors, by number, and the message that each holds."""

AS_ONE_FILE = "write it as one file with onnx.save_model(model, path, save_as_external_data=False)"
"""Remedy for a model whose other files cannot be read."""

KEY, VALUE = 1, 2
"""Fields of an entry of a tensor's `external_data`."""

LOCATION = b"location"

MOST_FIELDS = 20_000_000
"""Fields of a file that are looked at: a graph of 100,000 operators has two million."""

UNSUITED = set('/\\{}<>:"|?*')
"""Characters that separate folders, or have a meaning for Snakemake or for a file system."""


def data_files(path: Path | str) -> list[Path]:
    """Files of the same folder in which tensors of an ONNX model are stored.

    Parameters
    ----------
    path : Path or str
        The ONNX file.

    Returns
    -------
    list of Path
        Each file once, sorted by name, whether it is there or not; empty for a model in one file, and for a file that
        is missing or no ONNX file, which opening it refuses.

    Raises
    ------
    InputError
        Naming the file and the name, where a tensor is stored anywhere else than in a file of the same folder.
    """
    path = Path(path)
    try:
        state = path.stat()
        names = _locations(path, state.st_size, state.st_mtime_ns)
    except (OSError, ValueError):
        return []
    for name in names:
        require_plain_name(name, path)
    return [path.with_name(name) for name in names]


def model_files(path: Path | str) -> list[Path]:
    """All files of an ONNX model, the graph first; InputError as `data_files`."""
    return [Path(path), *data_files(path)]


def require_plain_name(name: str, path: Path) -> None:
    """Raise InputError, naming the ONNX file `path`, unless a name can only mean another file of its folder."""
    reserved = name in ("", ".", "..", path.name)
    if reserved or not name.isprintable() or UNSUITED & set(name):
        raise InputError(
            f"{path}: a tensor of it is stored in {name!r}, which is no name of another file in the same folder; load "
            f"the model where that file is, and {AS_ONE_FILE}"
        )


# Protocol buffers


@lru_cache(maxsize=256)
def _locations(path: Path, size: int, changed: int) -> tuple[str, ...]:
    # Size and time are keys, so that a file that was replaced is read again.
    del changed
    if size == 0:
        return ()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return tuple(sorted(set(_locations_in(content))))


def _locations_in(content: mmap.mmap) -> Iterator[str]:
    # Values of all entries `location`; ValueError for content that is no protocol buffer.
    waiting = [("ModelProto", 0, len(content))]
    count = 0
    while waiting:
        message, start, end = waiting.pop()
        entry = {}
        for number, first, last in _fields(content, start, end):
            count += 1
            if count > MOST_FIELDS:
                raise ValueError("too many fields")
            member = MESSAGES[message].get(number)
            if member is not None:
                waiting.append((member, first, last))
            elif message == "StringStringEntryProto":
                entry[number] = content[first:last]
        if entry.get(KEY) == LOCATION:
            yield entry.get(VALUE, b"").decode("utf-8")


def _fields(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    # Number, start and end of each field of a message; of a number, which has no length, both are where it ends.
    position = start
    while position < end:
        tag, position = _varint(content, position, end)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            # As in the zeros that a full disk or a download that broke off leaves.
            raise ValueError("no field has this number")
        length = 0
        if wire_type == 0:
            _, position = _varint(content, position, end)
        elif wire_type == 1:
            position += 8
        elif wire_type == 5:
            position += 4
        elif wire_type == 2:
            length, position = _varint(content, position, end)
            if position + length > end:
                raise ValueError("a field ends behind its message")
        else:
            raise ValueError("no field has this type")
        yield number, position, position + length
        position += length


def _varint(content: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    # A number of variable length, and the position behind it.
    value = 0
    shift = 0
    while position < end and shift < 64:
        byte = content[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise ValueError("a number does not end")
