"""Logits that were computed elsewhere: files of one model or of several, and the labels that belong to them."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.tables.logit_files import LABELS, SAMPLE_ID, read_logits_file
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.class_order import check_logits, check_order
from gfscore.workflow.new_audit.data_files import FoundData, find_data, labels_of
from gfscore.workflow.new_audit.found import FoundModel, Inspection, name_from
from gfscore.workflow.new_audit.request import Request

if TYPE_CHECKING:
    import pyarrow as pa

OTHER = {*LABELS, SAMPLE_ID}
NUMBERED = re.compile(r"[A-Za-z_. -]*\d+")
"""A column that says the number of its class: 7, logit_7, p7."""


def find_logits(path: Path) -> list[FoundModel]:
    """Models of a file of logits: one for each array or list column of them."""
    entry = {"source": "logits", "path": str(path)}
    members = _members(path)
    if len(members) < 2:
        only = {"member": members[0]} if members and members[0] != "logits" else {}
        return [FoundModel(name=name_from(path.name.split(".")[0]), entry=entry | only, words="logits")]
    words = f"logits, one of {len(members)} models in {path.name}"
    return [FoundModel(name=name_from(member), entry=entry | {"member": member}, words=words) for member in members]


def inspect_logits(models: Sequence[FoundModel], request: Request) -> Inspection:
    """Look at files of logits and at their labels; InputError as gfscore.workflow.new_audit.looking.inspect."""
    for model in models:
        if not model.has_logits_only:
            raise InputError(f"{model.entry['path']}: a network beside files of logits; audit them apart")
    for option, value in (
        ("--architecture", request.architecture), ("--preprocessing", request.preprocessing), ("--size", request.size),
        ("--eps", request.eps), ("--norm", request.norm != "linf"), ("--trust-code", request.trust_code),
        ("--device", request.device != "auto"),
        ("--labels", request.labels if request.data else None),
    ):  # fmt: skip
        if value:
            raise InputError(
                f"{option}: logits have no use for it; leave it out, and order rows and columns as the labels"
            )
    data, read = _logits_and_labels(models, request)
    true = data.images.labels.astype(np.int64)
    said, entries = [], {}
    for model, logits in zip(models, read, strict=True):
        check_logits(logits, true, where=model.entry["path"])
        remedy = "order the columns as the classes, or correct the labels"
        accuracy = check_order(logits, true, data.classes, where=model.entry["path"], remedy=remedy)
        words = f"{model.words}, {accuracy:.1%} of {len(true):,} right"
        said.append(f"model     {model.name}: {words}")
        entries[model.name] = (model.entry, [words])
    counts = [int(count) for count in data.counts]
    said += [
        f"labels    {data.words}, {len(true):,} samples, {len(counts)} classes ({few(list(data.classes))})",
        *audit_file.words_without_attacks("what attacks leave, logits cannot tell"),
    ]
    paths = dict.fromkeys(Path(model.entry["path"]) for model in models)
    first = next(iter(paths))
    # Of several files, that of their folder.
    name = request.name or name_from(first.name.split(".")[0] if len(paths) == 1 else first.resolve().parent.name)
    text = audit_file.audit_text(request.head(), name, data=data.entry, models=entries, measures={}, norm=request.norm)
    return Inspection(name, text, said)


def _logits_and_labels(models: Sequence[FoundModel], request: Request) -> tuple[FoundData, list[NDArray[Any]]]:
    """Data of a request, and the logits (N, K) of each of its models, in the order of the data.

    The labels are those of the data, or of the first file where the request names no data. Raises InputError, naming
    file and row, for logits of other samples.
    """
    first = models[0].entry["path"]
    data = find_data(request.data) if request.data and _holds_images(Path(request.data)) else None
    read = []
    for model in models:
        path, member = model.entry["path"], model.entry.get("member")
        asked = [part.strip() for part in request.labels.split(",")] if request.labels else None
        names = list(data.classes) if data else asked or _class_names(Path(path), member)
        logits, labels, _ = read_logits_file(path, classes=names, member=member)
        if data is None:
            data = labels_of(request.data or first, names)
        if len(logits) != len(data.images):
            raise InputError(
                f"{path}: {len(logits)} rows of logits, but there are {len(data.images)} labels in "
                f"{data.entry['path']}; give one row for each"
            )
        true = data.images.labels
        if labels is not None and (labels != true).any():
            row = int((labels != true).argmax())
            raise InputError(
                f"{path}: row {row} has another label than in {data.entry['path']}; give the rows in its order"
            )
        read.append(logits)
    assert data is not None  # there is a model
    return data, read


def _class_names(path, member):
    # Names of the columns, or numbers where these are numbered or there is one array.
    columns = _columns(path)
    if member is None and columns and "logits" not in columns:
        names = [name for name in columns if name not in OTHER]
        return [str(k) for k in range(len(names))] if all(map(NUMBERED.fullmatch, names)) else names
    # Any two names do, as only the number of columns is asked.
    logits, _, _ = read_logits_file(path, classes=["0", "1"], member=member)
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InputError(f"{path}: logits of shape {logits.shape}; give one row per sample, one column per class")
    return [str(k) for k in range(logits.shape[1])]


def _columns(path):
    # Names of the columns of a table, [] for arrays.
    if path.suffix == ".parquet":
        return list(_schema(path).names)
    if path.name.endswith((".csv", ".csv.gz")):
        opened = gzip.open if path.suffix == ".gz" else open
        try:
            with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
                return next(csv.reader([file.readline(1 << 20)]), [])
        except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: cannot be read as CSV ({error}); write it again as UTF-8") from error
    return []


def _members(path):
    # Arrays or list columns of logits in a file; none where each column is a class.
    if path.suffix == ".npz":
        from gfscore.tables.numpy_files import opened, whole_array

        with opened(path) as file:
            return [name for name in file.files if name not in OTHER and whole_array(file, name).ndim == 2]
    if path.suffix == ".parquet":
        from gfscore.tables.parquet_files import is_list

        return [field.name for field in _schema(path) if is_list(field.type)]
    return []


def _holds_images(path):
    if path.is_dir():
        return True
    if path.suffix == ".npz":
        from gfscore.tables.numpy_files import opened

        with opened(path) as file:
            return "x" in file.files
    if path.suffix == ".parquet":
        import pyarrow as pa

        return any(pa.types.is_struct(field.type) or pa.types.is_binary(field.type) for field in _schema(path))
    return False


def _schema(path: Path) -> pa.Schema:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gfscore.tables.malformed import unreadable

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, path.suffix, error) from error
