"""Certificates and counterexamples of a bundle: the files that their check needs, and the check, in numpy alone.

The samples tables hold the certificates and counterexamples. The part `proofs` of a bundle adds the networks, as plain
arrays, and the pixels of these samples; from both, the check computes every bound and every margin again
(gfscore.proofs.checking).
"""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.audit.values import TOLERATED_COUNT, TOLERATED_SHARE
from gfscore.core.errors import InputError
from gfscore.core.names import printable
from gfscore.core.numbers import counted
from gfscore.measures import NamedMeasure
from gfscore.measures.robust import PROVEN, REFUTED
from gfscore.measures.samples import ALREADY_WRONG, table_of
from gfscore.networks.batch_invariance import OF_FLOAT32, WIDER, Tolerances
from gfscore.proofs import counterexamples
from gfscore.proofs.certificates import Certificate, Claim, image_digest
from gfscore.proofs.checking.check import check, margins_at
from gfscore.proofs.checking.plain_network import LARGEST_NETWORK, PlainNetwork
from gfscore.proofs.packing import arrays_of
from gfscore.tables.parquet_tables import read_identity, read_logits, read_table
from gfscore.tables.table import DATASET
from gfscore.workflow.bundling.contents import Bundle, Json, name_of
from gfscore.workflow.entries import PlannedModel
from gfscore.workflow.plan import PlannedAudit

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet
    from gfscore.images.manifests import Manifest
    from gfscore.networks.classifier import Classifier

Image = NDArray[np.float32]

PIXELS = "proofs/images.npz"

LARGEST_PIXELS = 1 << 28
"""Most bytes of pixels, before compression, in the part `proofs` of a bundle."""

LARGEST_IMAGES = 1 << 30
"""Bytes that the file of these pixels, with the names of the samples, unpacks to at most."""

MOST_FAULTS = 5
"""Most faults of one table that are reported one by one."""

PROGRESS_STEP = 50
"""Certificates and counterexamples from one report of progress to the next."""

Report = Callable[[str], None]

PlainRow = dict[str, Any]
"""Row of a table by column."""


def no_report(words: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class EvidenceTable:
    """A samples table whose kind may keep certificates or counterexamples; `path` is below results/."""

    measure: NamedMeasure
    model: PlannedModel
    path: str

    @property
    def network(self) -> str:
        """Name of the network's file in a bundle."""
        return f"proofs/networks/{self.model.name.path}.npz"

    def read(self, path: Path | str) -> pd.DataFrame:
        """Rows with evidence; none where the table keeps none, InputError where its kind always does."""
        table = table_of(self.measure.kind.name)
        frame = read_table(path, table, evidence=True)
        names = [column.name for column in table.evidence]
        if not set(names) <= set(frame.columns):
            if self.measure.kind.name == PROVEN:
                raise InputError(
                    f"{name_of(self.path)}: no columns {' and '.join(names)}, without which nothing is proven"
                )
            return frame.iloc[:0].assign(**dict.fromkeys(names))
        return frame


def evidence_tables(audit: PlannedAudit) -> list[EvidenceTable]:
    """Samples tables of an audit that may hold evidence, model by model."""
    tables = []
    for model in audit.models:
        for measure in audit.measures.values():
            if measure.kind.evidence:
                tables.append(EvidenceTable(measure, model, model.samples(measure.name)))
    return tables


def evidence_files(audit: PlannedAudit) -> set[str]:
    """Names that the part `proofs` of a bundle may have."""
    networks = {table.network for table in evidence_tables(audit)}
    return {PIXELS, *networks} if networks else set()


# ---- writing ----


def write_evidence(folder: Path, audit: PlannedAudit, report: Report) -> bool:
    """Write networks and pixels into a bundle, from results/ and the files of the user.

    Parameters
    ----------
    folder : Path
        The bundle.
    audit : PlannedAudit
    report : callable
        Takes a sentence on what cannot be written.

    Returns
    -------
    bool
        Whether the audit has certificates or counterexamples.
    """
    # Imported late: opening images and networks takes torch.
    from gfscore.images.manifests import open_described
    from gfscore.proofs.graph import graph_of

    samples: set[str] = set()
    models: dict[str, PlannedModel] = {}
    for table in evidence_tables(audit):
        frame = table.read(table.path)
        sample_ids = frame.loc[_rows_to_check(table, frame), "sample_id"]
        samples.update(sample_ids)
        if len(sample_ids):
            models[table.network] = table.model
    if not samples:
        return False

    images, manifest = open_described(audit.dataset.manifest)
    _write_pixels(folder / PIXELS, images, samples, report)
    for name, model in models.items():
        classifier = _open(model, manifest)
        try:
            if classifier.network is None:
                raise InputError("it has no gradients")
            network = PlainNetwork(graph_of(classifier.network, images.image_shape).plain())
        except InputError as error:
            report(f"proofs: {model.label}: without its network, counterexamples are checked in part only: {error}")
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(network.to_bytes())
    return True


def _write_pixels(path: Path, images: ImageSet, samples: Collection[str], report: Report) -> None:
    rows = np.flatnonzero(np.isin(images.sample_id, sorted(samples)))
    most = LARGEST_PIXELS // max(4 * int(np.prod(images.image_shape)), 1)
    if len(rows) > most:
        report(f"proofs: the bundle holds the pixels of {most:,} samples of {len(rows):,}; the others are not checked")
        rows = rows[:most]
    pixels = np.concatenate(list(images.select(rows).batches(256)))
    path.parent.mkdir(parents=True)
    np.savez_compressed(path, sample_id=images.sample_id[rows].astype(str), pixels=pixels.astype(np.float32))


def _open(model: PlannedModel, manifest: Manifest) -> Classifier:
    from gfscore.networks.adjusted import open_model
    from gfscore.networks.offset_files import Adjustment

    checkpoint = model.weights if isinstance(model.weights, str) else None
    adjustment = None
    if model.offsets:
        adjustment = Adjustment(model.offsets.file, model.entry["strength"], model.name.threat, model.name.classifier)
    classifier, _ = open_model(model.manifest, checkpoint, manifest, adjustment=adjustment)
    return classifier


def _rows_to_check(table: EvidenceTable, frame: pd.DataFrame) -> NDArray[np.bool_]:
    # Rows with a certificate, or with a misclassified point: a counterexample, or the sample itself.
    if table.measure.kind.name == "proven":
        return (frame["status"] != "open").to_numpy()
    return (frame["counterexample"].notna() | (frame["attack"] == ALREADY_WRONG)).to_numpy()


# ---- checking ----


def _same_margins(
    margins: NDArray[np.float64], stored: NDArray[np.float32] | None, label: int, tolerances: Tolerances
) -> bool:
    # Whether margins (K - 1,) of a class over the others are those of stored logits (K,), up to rounding.
    if stored is None or len(stored) != len(margins) + 1:
        return False
    logits = stored.astype(np.float64)
    allowed = tolerances.repeated * np.ptp(logits) + tolerances.offset * np.abs(logits).max()
    return bool(np.abs(logits[label] - np.delete(logits, label) - margins).max() <= allowed)


@dataclass
class EvidenceCheck:
    """Check of all certificates and counterexamples of a bundle.

    Parameters
    ----------
    bundle : Bundle
    audit : PlannedAudit
    report : callable
        Takes a sentence on the progress of the check.

    Attributes
    ----------
    certificates, points : int
        How many were checked.
    undecided : Counter
        By table, counterexamples that exact arithmetic classifies as their label, by less than float32 may err.
    unchecked : list of str
        Sentences on what could not be checked, and why.
    """

    bundle: Bundle
    audit: PlannedAudit
    report: Report
    certificates: int = 0
    points: int = 0
    undecided: Counter[str] = field(default_factory=Counter)
    unchecked: list[str] = field(default_factory=list)
    _networks: dict[str, PlainNetwork] = field(default_factory=dict)

    @cached_property
    def tables(self) -> list[tuple[EvidenceTable, pd.DataFrame]]:
        """Tables with evidence, and their rows."""
        tables = []
        for table in evidence_tables(self.audit):
            frame = table.read(self.bundle.path(table.path))
            if len(frame):
                tables.append((table, frame))
        return tables

    @property
    def has_part(self) -> bool:
        """Whether the bundle holds networks or pixels to check with."""
        return not evidence_files(self.audit).isdisjoint(self.bundle.digests)

    def faults(self) -> Iterator[str]:
        """Yield what is wrong, each sentence with the table and the sample."""
        yield from self._pixel_faults()
        for table, frame in self.tables:
            yield from self._network_faults(table, frame)
            yield from self._row_faults(table, frame)
            self._note_unchecked(table, frame)

    def _row_faults(self, table: EvidenceTable, frame: pd.DataFrame) -> Iterator[str]:
        name = name_of(table.path)
        check_row = self._check_proven if table.measure.kind.name == PROVEN else self._check_attacked
        faulty_rows = 0
        for row in frame.to_dict("records"):
            try:
                check_row(row, table, self._images.get(row["sample_id"]))
            except InputError as error:
                faulty_rows += 1
                if faulty_rows <= MOST_FAULTS:
                    yield f"{name}: {printable(row['sample_id'])}: {error}"
        if faulty_rows > MOST_FAULTS:
            yield f"{name}: {faulty_rows - MOST_FAULTS} more with a wrong certificate or counterexample"

    def _count_one(self) -> None:
        checked = self.certificates + self.points
        if checked % PROGRESS_STEP == 0:
            self.report(f"certificates and counterexamples: {checked} of {self.number_to_check}")

    @cached_property
    def number_to_check(self) -> int:
        """Number of certificates, and of counterexamples and samples that are wrong without one."""
        return sum(int(_rows_to_check(table, frame).sum()) for table, frame in self.tables)

    @property
    def left_out(self) -> int:
        """Number of certificates and counterexamples that were not checked."""
        return self.number_to_check - self.certificates - self.points - self.undecided.total()

    def _note_unchecked(self, table: EvidenceTable, frame: pd.DataFrame) -> None:
        name = name_of(table.path)
        evidence = frame[[column.name for column in table_of(table.measure.kind.name).evidence]]
        without_pixels = evidence.notna().any(axis=1) & ~frame["sample_id"].isin(self._images.keys())
        if without_pixels.any():
            self.unchecked.append(
                f"{name}: certificates or counterexamples of {counted(int(without_pixels.sum()), 'sample')} whose "
                "pixels the bundle does not hold; ask for one of an audit of a smaller subset"
            )
        if self._network(table) is None:
            self.unchecked.append(
                f"{name}: what the counterexamples are classified as, since the bundle holds no network that the check "
                "can compute; run the model on them"
            )
        if self.undecided[name]:
            points = counted(self.undecided[name], "counterexample")
            self.unchecked.append(f"{name}: {points} that only the rounding of float32 may classify otherwise")
        if table.measure.kind.name == "adversarial":
            broken = (frame["value"] == 0) & (frame["attack"] != ALREADY_WRONG)
            missing = int((broken & frame["counterexample"].isna()).sum())
            if missing:
                self.unchecked.append(f"{name}: {counted(missing, 'sample')} without a stored counterexample")

    # ---- files ----

    @cached_property
    def _images(self) -> dict[str, Image]:
        path = self.bundle.path(PIXELS)
        shape = self._manifest["image_shape"]
        try:
            arrays = arrays_of(path.read_bytes(), largest=LARGEST_IMAGES)
            names, pixels = arrays["sample_id"], arrays["pixels"]
            if pixels.dtype != np.float32 or pixels.shape != (len(names), *shape):
                raise ValueError(f"pixels {pixels.shape} of type {pixels.dtype}")
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, OSError) as error:
            raise InputError(f"{PIXELS}: damaged ({error})") from error
        return dict(zip(names.tolist(), pixels, strict=True))

    @cached_property
    def _manifest(self) -> Json:
        return self.bundle.json(self.audit.dataset.manifest)

    def _network(self, table: EvidenceTable) -> PlainNetwork | None:
        # Read once for a model: its tables are checked with the same object, which keeps what it has computed.
        if table.network in self._networks:
            return self._networks[table.network]
        if table.network not in self.bundle.digests:
            return None
        path = self.bundle.path(table.network)
        if path.stat().st_size > LARGEST_NETWORK:
            raise InputError(f"{table.network}: larger than {LARGEST_NETWORK:,} bytes; no such network has proofs")
        try:
            self._networks[table.network] = PlainNetwork.from_bytes(path.read_bytes())
        except InputError as error:
            raise InputError(f"{table.network}: {error}") from error
        return self._networks[table.network]

    def _pixel_faults(self) -> Iterator[str]:
        dataset = read_table(self.bundle.path(self.audit.dataset.samples), DATASET)
        expected = dict(zip(dataset["sample_id"], dataset["pixel_digest"], strict=True))
        for name, pixels in self._images.items():
            # The dataset's table may state the digest of the float32 pixels, or of an image in 8 bits, channels last.
            digests = {image_digest(pixels)[:32]}
            levels = np.round(pixels * 255).astype(np.uint8)
            if np.array_equal(levels.astype(np.float32) / np.float32(255), pixels):
                channels_last = np.ascontiguousarray(levels.transpose(1, 2, 0))
                header = "{} {} {}\n".format(*channels_last.shape).encode()
                digests.add(hashlib.sha256(header + channels_last.tobytes()).hexdigest()[:32])
            if expected.get(name) not in digests:
                yield f"{PIXELS}: {printable(name)}: other pixels than datasets/{self.audit.dataset.name}.parquet says"

    def _network_faults(self, table: EvidenceTable, frame: pd.DataFrame) -> Iterator[str]:
        # The plain network must predict, for the samples themselves, what the measured network predicted, and give its
        # logits where the bundle holds them. More near-ties than in any network are no ties of that network.
        network = self._network(table)
        if network is None:
            return
        shape = tuple(self._manifest["image_shape"])
        if network.nodes[0].shape[1:] != shape or network.classes != len(self._manifest["classes"]):
            yield f"{table.network}: the network takes other images, or has other classes, than the dataset"
            return
        logits = self._logits(table)
        rows = frame.loc[frame["sample_id"].isin(self._images.keys()), ["sample_id", "clean_prediction"]]
        near_ties = 0
        for name, prediction in rows.itertuples(index=False):
            if pd.isna(prediction):
                yield f"{name_of(table.path)}: {printable(name)}: no clean_prediction to compare with the network"
                return
            image, label = self._images[name], int(prediction)
            lower, upper = margins_at(image, label, network)
            margins = (lower + upper) / 2
            fault = ""
            if not margins.min() > 0:
                near_ties += 1
                _, upper = margins_at(image, label, network, float32=True)
                if not upper.min() >= 0 or near_ties > max(TOLERATED_COUNT, TOLERATED_SHARE * len(rows)):
                    fault = "it predicts another class"
            if logits is not None and not _same_margins(margins, logits[0].get(name), label, logits[1]):
                fault = "the bundle holds other logits"
            if fault:
                yield f"{table.network}: another network than the one that was measured: {fault} for {printable(name)}"
                return

    def _logits(self, table: EvidenceTable) -> tuple[dict[str, NDArray[np.float32]], Tolerances] | None:
        # Stored logits of a model by sample, and how much others may differ; None where the bundle has none.
        path = table.model.logits
        if name_of(path) not in self.bundle.digests:
            return None
        names, _, logits = read_logits(self.bundle.path(path))
        in_float32 = read_identity(self.bundle.path(path)).get("dtype", "float32") == "float32"
        return dict(zip(names, logits, strict=True)), OF_FLOAT32 if in_float32 else WIDER

    # ---- samples ----

    def _check_proven(self, row: PlainRow, table: EvidenceTable, image: Image | None) -> None:
        status = row["status"]
        is_proven = status == "proven"
        is_refuted = status in REFUTED
        if is_proven != (row["certificate"] is not None) or is_proven != (row["value"] == 1):
            presence = "without" if row["certificate"] is None else "with"
            raise InputError(f"it is {status} with the value {row['value']:g}, {presence} a certificate")
        if row["counterexample"] is not None and not is_refuted:
            raise InputError(f"it is {status}, with a counterexample")
        if image is None:
            return
        if is_proven:
            self._check_certificate(row, table, image)
        if is_refuted:
            if row["counterexample"] is None and row["decided_by"] != "prediction":
                raise InputError(f"it is {status} by {row['decided_by']}, without a counterexample")
            self._check_point(row, table, image, certain=status == "refuted")

    def _check_certificate(self, row: PlainRow, table: EvidenceTable, image: Image) -> None:
        network = self._network(table)
        if network is None:
            raise InputError(f"it is proven, and {table.network} is missing")
        settings: Any = table.measure.settings
        claim = Claim(network.digest, image_digest(image), int(row["label"]), settings.norm, float(settings.eps))
        lower = check(Certificate.from_bytes(row["certificate"]), claim, network, image)
        highest = lower + 1e-6 * (1 + abs(lower))
        if not row["lower"] <= highest:
            raise InputError(f"its margin is proven to be {lower:.6g}, less than the {row['lower']:.6g} of the table")
        if row["lower32"] > highest:
            raise InputError(f"its margin is proven to be {lower:.6g}, less than lower32, {row['lower32']:.6g}")
        self.certificates += 1
        self._count_one()

    def _check_attacked(self, row: PlainRow, table: EvidenceTable, image: Image | None) -> None:
        has_counterexample = row["counterexample"] is not None
        is_wrong = row["attack"] == ALREADY_WRONG
        if has_counterexample and (row["value"] != 0 or is_wrong):
            raise InputError(
                "it has a counterexample, but its row says that no attack broke it, or that none was needed"
            )
        if image is None or not (has_counterexample or is_wrong):
            return
        length = self._check_point(row, table, image, certain=False)
        if abs(length - row["distance"]) > 1e-5 * (1 + length):
            raise InputError(f"its counterexample is at a distance of {length:.6g}, not {row['distance']:.6g}")

    def _check_point(self, row: PlainRow, table: EvidenceTable, image: Image, *, certain: bool) -> float:
        # Distance of the counterexample; 0 for a sample that is misclassified without one.
        point = image
        if row["counterexample"] is not None:
            point = counterexamples.from_bytes(row["counterexample"], image.shape)
        if not (point >= 0).all() or not (point <= 1).all():
            raise InputError("its counterexample has pixels outside [0, 1]")
        settings: Any = table.measure.settings
        length = counterexamples.distance(point, image, settings.norm)
        if not length <= float(settings.eps):
            raise InputError(f"its counterexample is at a distance of {length:.9g}, beyond {float(settings.eps):.9g}")
        network = self._network(table)
        if network is None:
            return length
        label = int(row["label"])
        _, upper = margins_at(point, label, network)
        if not (upper <= 0).any():
            if certain:
                raise InputError("its counterexample is not certainly misclassified")
            lower, _ = margins_at(point, label, network, float32=True)
            if not (lower <= 0).any():
                raise InputError("its counterexample is classified as its label")
            self.undecided[name_of(table.path)] += 1
            return length
        self.points += 1
        self._count_one()
        return length
