"""Files of logits that were computed elsewhere, and their labels.

What is probabilities in place of logits is refused, or turned into logarithms where the request allows it.
"""

import csv
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.outputs import output_words
from gfscore.statistics.logits import (
    both_classes,
    is_one_column,
    log_probabilities,
    require_logits,
    stored_logits,
)
from gfscore.tables.binary_files import declared_array, is_list, opened, unreadable
from gfscore.tables.logit_files import LABELS, SAMPLE_ID, columns_of, logits_layout, read_logits_file
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.class_order import check_logits, check_order
from gfscore.workflow.new_audit.data_files import NewData, find_data, labels_of, require_labels_agree
from gfscore.workflow.new_audit.model_outputs import DISTRIBUTIONS, kind_of_outputs, require_use_of_probabilities
from gfscore.workflow.new_audit.new_model import NewModel
from gfscore.workflow.new_audit.output_names import order_of_option
from gfscore.workflow.new_audit.request import NETWORK_OPTIONS, Inspection, Request, name_from

OTHER_COLUMNS = {*LABELS, SAMPLE_ID}
"""Columns and arrays of a file of logits that hold none."""

NUMBERED = re.compile(r"[A-Za-z_. -]*\d+")
"""A column that says the number of its class: 7, logit_7, p7."""

BINARY = ("0", "1")
"""Names of two classes of which there is one column, of the second."""


def find_logits(path: Path) -> list[NewModel]:
    """Models of a file of logits: one for each array or list column of them.

    Parameters
    ----------
    path : Path
        .npz, .npy, .csv, .csv.gz or .parquet.
    """
    entry = {"source": "logits", "path": str(path)}
    # Arrays or list columns of logits; none where each column is a class.
    members: list[str] = []
    if path.suffix == ".npz":
        with _archive(path) as file:
            arrays = [name for name in file.files if name not in OTHER_COLUMNS]
            members = [name for name in arrays if len(declared_array(file, name)[0]) == 2]
    elif path.suffix == ".parquet":
        members = [field.name for field in _schema(path) if is_list(field.type)]

    if len(members) > 1:
        words = f"logits, one of {len(members)} models in {path.name}"
        return [NewModel(name_from(member), {**entry, "member": member}, words) for member in members]
    if members and members[0] != "logits":
        entry["member"] = members[0]
    return [NewModel(name_from(path.name.split(".")[0]), entry, "logits")]


def inspect_logits(models: Sequence[NewModel], request: Request) -> Inspection:
    """Inspect files of logits and their labels.

    Parameters
    ----------
    models : sequence of NewModel
        Files of logits, an entry for each array of one.
    request : Request
        Options; of those on networks none.

    Returns
    -------
    Inspection
        The audit that would be run.

    Raises
    ------
    InputError
        See gfscore.workflow.new_audit.inspection.inspect.
    """
    _require_logits_alone(models, request)
    data, values_of_models = _logits_and_labels(models, request)
    labels = data.images.labels.astype(np.int64)
    lines = []
    entries = []
    for model, values in zip(models, values_of_models, strict=True):
        logits, entry, transformation = _as_logits(model, values, request)
        check_logits(logits, labels, where=model.path)
        remedy = "order the columns as the classes, or correct the labels"
        accuracy = check_order(logits, labels, data.classes, where=model.path, remedy=remedy)
        # Logits that the files of the workflow cannot hold are refused: beyond float32, or too close in it.
        numbers, classes_of_rows = require_logits(logits, labels, source=model.path, allow_probabilities=True)
        stored_logits(numbers, classes_of_rows, source=model.path)
        words = model.words
        if transformation:
            words += f", {transformation}"
        words += f", {accuracy:.1%} of {len(labels):,} right"
        lines.append(f"model     {model.name}: {words}")
        entries.append(audit_file.ModelEntry(model.name, entry, [words]))
    require_use_of_probabilities(request, [entry.settings for entry in entries])

    classes = f"{len(data.classes)} classes ({few(list(data.classes))})"
    lines.append(f"labels    {data.words}, {len(labels):,} samples, {classes}")
    lines += audit_file.lines_without_attacks("what attacks leave, logits cannot tell")
    # Of several files, the name of their folder.
    paths = list(dict.fromkeys(Path(model.path) for model in models))
    name_source = paths[0].name.split(".")[0] if len(paths) == 1 else paths[0].resolve().parent.name
    name = request.name or name_from(name_source)
    audit = audit_file.NewAudit(name=name, data=data.entry, models=entries, measures={})
    return audit.inspection(lines)


def _require_logits_alone(models: Sequence[NewModel], request: Request) -> None:
    for model in models:
        if not model.has_logits_only:
            raise InputError(f"{model.path}: a network beside files of logits; audit them apart")
    options = list(NETWORK_OPTIONS)
    if request.data:
        # With data the names of the classes are theirs.
        options.append("labels")
    for option in options:
        if request.differs_from_default(option):
            raise InputError(
                f"--{option.replace('_', '-')}: logits have no use for it; leave it out, and order rows and columns as "
                "the labels"
            )


def _as_logits(model: NewModel, values: NDArray[Any], request: Request) -> tuple[NDArray[Any], Mapping[str, Any], str]:
    # Logits (N, K) of the values in a file, the settings of their model, and what they are made of in words.
    one_column = is_one_column(values)
    logits = both_classes(values, probabilities=False) if one_column else values
    kind = None
    if logits.dtype.kind in "fiu" and logits.ndim == 2 and logits.size:
        kind = kind_of_outputs(logits)
    if kind is None:
        return logits, model.entry, output_words(one_column=one_column, logarithms=False)
    if kind not in DISTRIBUTIONS or not request.probabilities:
        check_logits(logits, np.zeros(len(logits), dtype=np.int64), where=model.path, kind=kind)
    probabilities = both_classes(values, probabilities=True) if one_column else values
    entry = {**model.entry, "allow_probabilities": LOGARITHMS}
    words = output_words(one_column=one_column, logarithms=True)
    return log_probabilities(probabilities, source=model.path), entry, words


def _logits_and_labels(models: Sequence[NewModel], request: Request) -> tuple[NewData, list[NDArray[Any]]]:
    # Data of a request, and the logits (N, K) of each of its models, in the order of the data. The labels are those of
    # the data, or of the first file where the request names no data.
    data = None
    if request.data and _holds_images(Path(request.data)):
        data = find_data(request.data, request)
        require_labels_agree(data)
    option_names = list(order_of_option(request.labels)) if request.labels else []
    logits_of_models = []
    for model in models:
        member = model.entry.get("member")
        names = option_names
        if data is not None:
            names = list(data.classes)
        elif not option_names:
            names = _class_names(Path(model.path), member)
        if option_names:
            columns = _class_names(Path(model.path), member)
            if len(option_names) != len(columns):
                raise InputError(
                    f"{model.path}: logits of {len(columns)} classes, but --labels {request.labels} has "
                    f"{len(option_names)} names; give one for each class, in the order of the columns"
                )
        logits, labels, _ = read_logits_file(model.path, classes=names, member=member)
        if data is None:
            data = labels_of(request.data or models[0].path, names)
        if len(logits) != len(data.images):
            raise InputError(
                f"{model.path}: {len(logits)} rows of logits, but there are {len(data.images)} labels in {data.path}; "
                "give one row for each"
            )
        if labels is not None and (labels != data.images.labels).any():
            row = int((labels != data.images.labels).argmax())
            raise InputError(
                f"{model.path}: row {row} has another label than in {data.path}; give the rows in its order"
            )
        logits_of_models.append(logits)
    assert data is not None  # there is a model
    return data, logits_of_models


def _class_names(path: Path, member: str | None) -> list[str]:
    # Names of the columns, or numbers where these are numbered or there is one array.
    columns: list[str] = []
    if path.suffix == ".parquet":
        columns = list(_schema(path).names)
    elif path.name.endswith((".csv", ".csv.gz")):
        open_text = gzip.open if path.suffix == ".gz" else open
        try:
            with open_text(path, "rt", encoding="utf-8-sig", newline="") as file:
                columns = next(csv.reader([file.readline(1 << 20)]), [])
        except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: cannot be read as CSV ({error}); write it again as UTF-8") from error

    if member is None and columns and "logits" not in columns:
        names = [name for name in columns if name not in OTHER_COLUMNS]
        if len(names) == 1:
            return list(BINARY)
        if all(map(NUMBERED.fullmatch, names)):
            return _numbers(len(names))
        return names
    # Labels are not looked at: they may be names of the classes that are counted here.
    arrays = columns_of(path, bare="logits", classes=BINARY)
    layout = logits_layout(arrays, path, classes=BINARY, member=member)
    logits = arrays[layout.names[0]]
    if layout.by_class or is_one_column(logits):
        return list(BINARY)
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InputError(f"{path}: logits of shape {logits.shape}; give one row per sample, one column per class")
    return _numbers(logits.shape[1])


def _numbers(count: int) -> list[str]:
    return list(map(str, range(count)))


def _holds_images(path: Path) -> bool:
    if path.is_dir():
        return True
    if path.suffix == ".npz":
        with _archive(path) as file:
            return any(len(declared_array(file, name)[0]) > 2 for name in file.files)
    if path.suffix == ".parquet":
        return any(pa.types.is_struct(field.type) or pa.types.is_binary(field.type) for field in _schema(path))
    return False


@contextmanager
def _archive(path: Path) -> Iterator[Any]:
    # An open .npz file, whose damage is told by its name.
    try:
        with opened(path) as file:
            yield file
    # Damaged files raise errors of many types.
    except Exception as error:
        raise unreadable(path, ".npz", error) from error


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, path.suffix, error) from error
