"""Logits that were computed elsewhere: files of one model or of several, and the labels that belong to them."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.outputs import output_words
from gfscore.statistics.logits import both_classes, is_one_column, log_probabilities, require_logits, stored_logits
from gfscore.tables.binary_files import declared_array, opened, unreadable
from gfscore.tables.logit_files import LABELS, SAMPLE_ID, read_logits_file
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.class_order import check_logits, check_order
from gfscore.workflow.new_audit.data_files import FoundData, find_data, labels_of, require_labels_agree
from gfscore.workflow.new_audit.output_names import asked_order
from gfscore.workflow.new_audit.request import OF_NETWORKS, FoundModel, Inspection, Request, name_from

if TYPE_CHECKING:
    import pyarrow as pa
from collections.abc import Callable
from typing import TYPE_CHECKING

from gfscore.core.settings import WHITE
from gfscore.networks.batch_invariance import spread_over
from gfscore.networks.model_source import module_of
from gfscore.networks.outputs import Output, SeveralOutputs
from gfscore.statistics.logits import ONE_SIGMOID, TOTALS, probabilities_in
from gfscore.workflow.new_audit.class_order import match_classes

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier


OTHER = {*LABELS, SAMPLE_ID}
NUMBERED = re.compile(r"[A-Za-z_. -]*\d+")
"""A column that says the number of its class: 7, logit_7, p7."""

BINARY = ("0", "1")
"""Names of two classes of which there is one column, of the second."""


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
    """Look at files of logits and at their labels; InputError as gfscore.workflow.new_audit.inspection.inspect."""
    for model in models:
        if not model.has_logits_only:
            raise InputError(f"{model.entry['path']}: a network beside files of logits; audit them apart")
    # Beside data the names of the classes are theirs.
    for option in (*OF_NETWORKS, "labels") if request.data else OF_NETWORKS:
        if request.is_given(option):
            raise InputError(
                f"--{option.replace('_', '-')}: logits have no use for it; leave it out, and order rows and columns as "
                "the labels"
            )
    data, read = _logits_and_labels(models, request)
    true = data.images.labels.astype(np.int64)
    said, entries = [], {}
    for model, values in zip(models, read, strict=True):
        logits, settings, made_of = _as_logits(model, values, request)
        check_logits(logits, true, where=model.entry["path"])
        remedy = "order the columns as the classes, or correct the labels"
        accuracy = check_order(logits, true, data.classes, where=model.entry["path"], remedy=remedy)
        _require_storable(logits, true, where=model.entry["path"])
        words = f"{', '.join(filter(None, [model.words, made_of]))}, {accuracy:.1%} of {len(true):,} right"
        said.append(f"model     {model.name}: {words}")
        entries[model.name] = (settings, [words])
    require_use_of_probabilities(request, [settings for settings, _ in entries.values()])
    counts = [int(count) for count in data.counts]
    said += [
        f"labels    {data.words}, {len(true):,} samples, {len(counts)} classes ({few(list(data.classes))})",
        *audit_file.words_without_attacks("what attacks leave, logits cannot tell"),
    ]
    paths = dict.fromkeys(Path(model.entry["path"]) for model in models)
    first = next(iter(paths))
    # Of several files, that of their folder.
    name = request.name or name_from(first.name.split(".")[0] if len(paths) == 1 else first.resolve().parent.name)
    file = audit_file.audit_file(name, data=data.entry, models=entries, measures={}, norm=request.norm)
    return Inspection(name, file.text, file.sections, said)


def _require_storable(logits: NDArray[Any], labels: NDArray[np.int64], *, where: str) -> None:
    """Raise InputError for logits that the files of the workflow cannot hold: beyond float32, or too close in it."""
    numbers, classes = require_logits(logits, labels, source=where, allow_probabilities=True)
    stored_logits(numbers, classes, source=where)


def _as_logits(
    model: FoundModel, values: NDArray[Any], request: Request
) -> tuple[NDArray[Any], Mapping[str, Any], str]:
    """Logits (N, K) of the values in a file, the settings of their model, and what they are made of in words.

    Raises InputError for probabilities that the request does not allow.
    """
    where, one_column = model.entry["path"], is_one_column(values)
    logits = both_classes(values, probabilities=False) if one_column else values
    kind = kind_of_outputs(logits) if logits.dtype.kind in "fiu" and logits.ndim == 2 and logits.size else None
    if kind is None:
        return logits, model.entry, output_words(one_column=one_column, logarithms=False)
    if kind not in DISTRIBUTIONS or not request.probabilities:
        check_logits(logits, np.zeros(len(logits), dtype=np.int64), where=where, kind=kind)
    shares = both_classes(values, probabilities=True) if one_column else values
    settings = {**model.entry, "allow_probabilities": LOGARITHMS}
    return log_probabilities(shares, source=where), settings, output_words(one_column=one_column, logarithms=True)


def _logits_and_labels(models: Sequence[FoundModel], request: Request) -> tuple[FoundData, list[NDArray[Any]]]:
    """Data of a request, and the logits (N, K) of each of its models, in the order of the data.

    The labels are those of the data, or of the first file where the request names no data. Raises InputError, naming
    file and row, for logits of other samples.
    """
    first = models[0].entry["path"]
    data = find_data(request.data, request) if request.data and _holds_images(Path(request.data)) else None
    if data is not None:
        require_labels_agree(data)
    read = []
    for model in models:
        path, member = model.entry["path"], model.entry.get("member")
        asked = list(asked_order(request.labels)) if request.labels else None
        names = list(data.classes) if data else asked or _class_names(Path(path), member)
        if asked:
            _require_a_name_each(asked, _class_names(Path(path), member), path, request)
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


def _require_a_name_each(names: Sequence[str], columns: Sequence[str], path: str, request: Request) -> None:
    if len(names) != len(columns):
        raise InputError(
            f"{path}: logits of {len(columns)} classes, but --labels {request.labels} has {len(names)} names; give one "
            "for each class, in the order of the columns"
        )


def _class_names(path, member):
    # Names of the columns, or numbers where these are numbered or there is one array.
    columns = _columns(path)
    if member is None and columns and "logits" not in columns:
        names = [name for name in columns if name not in OTHER]
        if len(names) == 1:
            return list(BINARY)
        return [str(k) for k in range(len(names))] if all(map(NUMBERED.fullmatch, names)) else names
    # Any two names do, as only the number of columns is asked.
    logits, _, _ = read_logits_file(path, classes=BINARY, member=member)
    if is_one_column(logits):
        return list(BINARY)
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
        with _archive(path) as file:
            return [name for name in file.files if name not in OTHER and len(declared_array(file, name)[0]) == 2]
    if path.suffix == ".parquet":
        from gfscore.tables.binary_files import is_list

        return [field.name for field in _schema(path) if is_list(field.type)]
    return []


def _holds_images(path):
    if path.is_dir():
        return True
    if path.suffix == ".npz":
        with _archive(path) as file:
            return any(len(declared_array(file, name)[0]) > 2 for name in file.files)
    if path.suffix == ".parquet":
        import pyarrow as pa

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
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, path.suffix, error) from error


DISTRIBUTIONS = (TOTALS[1], ONE_SIGMOID)
"""Outputs whose logarithms are logits: probabilities that sum to 1, and the probability of one of two classes."""

SHOWN = 64
"""Images on which outputs are told from probabilities."""


def open_for_logits(
    entry: dict[str, Any],
    model: FoundModel,
    request: Request,
    *,
    classes: Sequence[str],
    images: NDArray[np.float32],
    opened: Callable[[Mapping[str, Any]], Classifier],
) -> tuple[Classifier, list[str]]:
    """Classifier that gives logits, and in words what had to be chosen for that.

    `entry` gets the settings `output`, `head` and `allow_probabilities` where the network needs them; `opened` opens
    the classifier of an entry; `classes` are those of the data. Raises InputError, naming file and option, where
    several outputs fit or none, and for probabilities that the request does not allow.
    """
    words = []
    if request.output is not None:
        entry["output"] = _written(request.output)
        words.append(f"output {request.output}, as asked")
    try:
        classifier = opened(entry)
    except SeveralOutputs as error:
        chosen = _fitting(error, model, request, classes)
        entry["output"] = _written(chosen.name)
        words.append(f"{chosen}, the only one of {len(error.outputs)} outputs that fits the classes")
        classifier = opened(entry)
    head_of = getattr(module_of(entry["source"]), "head_of", None)
    head = head_of({**entry, "image_shape": images.shape[1:]}, Path(entry["path"])) if head_of else None
    if head is not None:
        entry["head"] = head
        classifier = opened(entry)
    if classifier.one_column and len(classes) > 2:
        raise InputError(
            f"{entry['path']}: has one output, which tells two classes apart, and the data have {len(classes)} "
            f"({few(classes)}); give images of its two classes"
        )
    values = _shown_whatever_the_pixels(classifier, images)
    kind = kind_of_outputs(values)
    if kind in DISTRIBUTIONS and request.probabilities:
        entry["allow_probabilities"] = LOGARITHMS
        classifier = opened(entry)
    elif kind in DISTRIBUTIONS:
        # Refused here, as no preprocessing makes logits of probabilities.
        check_logits(values, np.zeros(len(values), dtype=np.int64), where=entry["path"], kind=kind)
    if classifier.outputs:
        words.append(classifier.outputs)
    return classifier, words


def _shown_whatever_the_pixels(classifier: Classifier, images: NDArray[np.float32]) -> NDArray[np.float32]:
    # Probabilities are probabilities whatever is shown, while logits of a network that takes pixels up to 255 may all
    # be small for pixels up to 1.
    rows = spread_over(len(images), SHOWN)
    shown = [images[rows], WHITE * images[rows], 2 * images[rows] - 1]
    values = np.concatenate([classifier.logits(batch) for batch in shown])
    # A softmax of several operators may overflow on pixels that the network does not take.
    finite = np.isfinite(values).all(axis=1)
    return values[finite] if finite.any() else values


def _written(name: str) -> str | int:
    # As a number where it is one, so that the file of the audit shows it without quotes.
    return int(name) if name.isdecimal() and str(int(name)) == name else name


def _fitting(error: SeveralOutputs, model: FoundModel, request: Request, classes: Sequence[str]) -> Output:
    where = model.entry["path"]
    fitting = []
    for output in error.outputs:
        k = output.classes(error.images)
        if k is not None and _match(model, classes, k, request):
            fitting.append(output)
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(map(str, fitting or error.outputs))
    fault = f"{len(fitting)} of its outputs may be" if fitting else f"none of its {len(error.outputs)} outputs fits"
    raise InputError(
        f"{where}: {fault} the logits of {len(classes)} classes: {shown}; add --output with the name of the right one, "
        "or its place from 0 (make: OUTPUT=)"
    )


def _match(model, classes, k, request):
    try:
        match_classes(model.labels, classes, k, asked=request.labels, where=model.entry["path"])
    except InputError:
        return False
    return True


def kind_of_outputs(values: NDArray[np.floating]) -> str | None:
    """What outputs (n, K) are that are no logits, as probabilities_in, but for one output whatever its size.

    A binary classifier (0, z) whose z all lie in [0, 1] would always answer the second class.
    """
    one_output = values.shape[1] == 2 and not values[:, 0].any()
    if one_output and values[:, 1].min() >= 0 and values[:, 1].max() <= 1 and np.ptp(values[:, 1]) > 0:
        return ONE_SIGMOID
    return probabilities_in(values)


def require_use_of_probabilities(request: Request, entries: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError where a request takes logarithms of probabilities, and no model gives any."""
    if request.probabilities and not any("allow_probabilities" in entry for entry in entries):
        raise InputError(
            "--probabilities: no model here gives probabilities alone (where a graph ends in a softmax or sigmoid, "
            "logits are taken before it); leave it out"
        )
