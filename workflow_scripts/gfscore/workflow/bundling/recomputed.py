"""What the files of a bundle must hold, computed again from what they rest on, and where they differ from it.

Differences are sentences that begin with a file. Numbers may differ by RELATIVE or ABSOLUTE, numbers in single
precision by RELATIVE_OF_FLOAT32, since other processors round otherwise. Everything else must be equal.
"""

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np
import pandas as pd

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.audit_folder import AuditFolder
from gfscore.audit.checks import CheckedModel, check_answers, selection_of
from gfscore.audit.judgement import verdict_on_audit
from gfscore.audit.samples import SampleList, ScoresFile
from gfscore.audit.scoring import LogitCheck, check_and_score
from gfscore.audit.tabulation import tabulate
from gfscore.audit.values import AuditSubject, AuditValues
from gfscore.audit.verdicts.declines import RELEASE_VALUES
from gfscore.audit.verdicts.findings import with_findings
from gfscore.core.dataset_manifest import resolve_label_error_rates
from gfscore.core.digests import without_checksums
from gfscore.core.identity import UNCALIBRATED
from gfscore.core.mappings import without
from gfscore.core.names import printable, without_queries
from gfscore.core.numbers import counted
from gfscore.core.settings import RecordFile
from gfscore.core.software import software, version_in_words
from gfscore.measures import NamedMeasure
from gfscore.measures.samples import table_of
from gfscore.networks.checkpoint_files import model_digest
from gfscore.show.page import provenance
from gfscore.show.page.provenance import versions
from gfscore.show.page.report import PageSettings, page_of_folder
from gfscore.tables.parquet_tables import read_identity, read_table, typed_frame
from gfscore.tables.table import DATASET
from gfscore.workflow import audit_steps
from gfscore.workflow.bundling.contents import Bundle, Json, inputs_of_tables, logit_files, name_of
from gfscore.workflow.catalogue import CATALOGUE
from gfscore.workflow.plan import PlannedAudit

T = TypeVar("T")

RELATIVE = 1e-7
ABSOLUTE = 1e-10
RELATIVE_OF_FLOAT32 = 1e-6

OF_LOGITS = ("calibration", "falsification")
"""Tables that cannot be made without logits; others hold rows at a chosen temperature that cannot."""

OF_THE_RUN = ("software", "time")
"""Entries of a verdict on the run that judged, which cannot be checked against the bundle."""

PAGE = "report.html"

VERSIONS = re.compile(r"<dt>([^<]+) \(report\)</dt><dd>([^<]*)</dd>")
"""Versions that drew a page, as its provenance states them."""

COMPRESSED = re.compile(r"H4sI[A-Za-z0-9+/]{20,}={0,2}")
"""Base64 of gzip, by the first bytes that every such file has."""

LARGEST = 1 << 28
"""Bytes of one compressed part of a page that are unpacked."""


@dataclass(frozen=True)
class Recomputed:
    """What the files of a bundle must hold; each method yields what differs, as sentences that begin with a file.

    InputError is raised where something cannot be read, or the values cannot be audited.

    Parameters
    ----------
    bundle : Bundle
    audit : PlannedAudit
        Audit of the resolved configuration in the bundle.
    """

    bundle: Bundle
    audit: PlannedAudit

    @cached_property
    def has_logits(self) -> bool:
        """Whether the logits are in the bundle."""
        names = logit_files(self.audit)
        return bool(names) and all(name in self.bundle.digests for name in names)

    @cached_property
    def _folder(self) -> AuditFolder:
        return AuditFolder(self.bundle.audit_path("verdict.json").parent, self.audit.name)

    @cached_property
    def _files(self) -> AuditFiles:
        # Paths in the bundle.
        files: dict[str, object] = {}
        for name, paths in inputs_of_tables(self.audit).items():
            if isinstance(paths, str):
                files[name] = self.bundle.path(paths)
            else:
                files[name] = [self.bundle.path(path) for path in paths]
        return AuditFiles.from_inputs(files)

    @cached_property
    def _scores(self) -> Path:
        return self.bundle.path(f"results/scores/{self.audit.name}.parquet")

    @cached_property
    def _sweeps(self) -> Path:
        return self.bundle.path(f"results/sweeps/{self.audit.name}.parquet")

    def _subject(self, measures: Mapping[str, NamedMeasure]) -> AuditSubject:
        subject = AuditSubject.parse(audit_steps.subject(self.audit, measures))
        if not self.has_logits:
            # Without logits there is no value at a chosen temperature.
            return replace(subject, logits={}, calibrated_measure=None)
        logits = {}
        for model, name in zip(subject.logits, logit_files(self.audit), strict=True):
            logits[model] = self.bundle.path(name)
        return replace(subject, logits=logits)

    def _values(self, measures: Mapping[str, NamedMeasure]) -> AuditValues:
        # Values of the measures that a step reads, from their samples tables.
        return AuditValues(
            subject=self._subject(measures),
            selection=self._folder.selection_file,
            dataset=self.bundle.path(self.audit.dataset.samples),
            scores=self._scores,
            samples=[self.bundle.path(path) for path in self.audit.sample_files(measures)],
        )

    @cached_property
    def _manifest(self) -> Json:
        return self.bundle.json(self.audit.dataset.manifest)

    def dataset(self) -> Iterator[str]:
        """The manifest of the dataset against its samples and the configuration."""
        dataset, manifest = self.audit.dataset, self._manifest
        path = self.bundle.path(dataset.samples)
        samples = read_table(path, DATASET, expect={"dataset_digest": manifest["digest"]})
        labels = samples["label"].to_numpy()
        classes = len(manifest["classes"])
        expected = {
            "dataset": dataset.name,
            "samples": len(samples),
            "samples_per_class": np.bincount(labels, minlength=classes).tolist(),
            "classes": dataset.settings.classes or manifest["classes"],
            "settings": dataset.image_settings(),
        }
        stored = {key: manifest.get(key) for key in expected}
        yield from differences(f"datasets/{dataset.name}.json", stored, expected)

    def labels(self) -> Iterator[str]:
        """Names and labels of the samples in every table of values per sample against the dataset's."""
        labels_of = cache(self._labels_of)
        labels = labels_of(self.audit.dataset.name)
        for path in self.audit.sample_files(self.audit.measures):
            measure = self.audit.measures[path.split("/")[2]]
            frame = read_table(self.bundle.path(path), table_of(measure.kind.name))
            yield from other_labels(path, frame, labels)
        for path in self.audit.projection_files():
            file = self.bundle.path(path)
            frame = read_table(file, CATALOGUE[read_identity(file)["table"]])
            yield from other_labels(path, frame, labels_of(path.split("/")[3]))
        path = f"scores/{self.audit.name}.parquet"
        yield from other_labels(path, read_table(self.bundle.path(path), CATALOGUE["scores"]), labels)
        release = self.audit.release_values()
        if isinstance(release, str):
            yield from other_labels(release, read_table(self.bundle.path(release), RELEASE_VALUES), labels)

    def measurements(self) -> Iterator[str]:
        """Data, settings and checkpoint that a table of values per sample names, against what the audit asks for.

        Manifests of models are compared with the configuration.
        """
        yield from self._manifests_of_models()
        digest_of_model = {}
        for model in self.audit.models:
            source = model.network.source
            if model.source.name == "trained" or (source.fetched and not source.fitted):
                digest_of_model[model.label] = self.bundle.json(model.network.manifest)["sha256"]

        paths = self.audit.sample_files(self.audit.measures)
        for model in self.audit.models:
            for measure in self.audit.measures.values():
                path = model.samples(measure.name)
                if path not in paths:
                    continue
                identity = read_identity(self.bundle.path(path))
                expected = {"dataset_digest": self._manifest["digest"]}
                # Values that were computed elsewhere come without settings.
                if model.source.name != "samples":
                    expected["settings"] = json.dumps(measure.settings.explicit(), sort_keys=True)
                if model.label in digest_of_model:
                    expected["checkpoint_sha256"] = digest_of_model[model.label]
                yield from differences(name_of(path), {key: identity.get(key) for key in expected}, expected)

        for label, identity in read_identity(self._scores)["logits"].items():
            if label in digest_of_model and identity.get("checkpoint_sha256") != digest_of_model[label]:
                yield f"scores/{self.audit.name}.parquet: logits of another checkpoint of {printable(label)}"

    def _manifests_of_models(self) -> Iterator[str]:
        # Names, and of files that are not fitted here settings and digests, against the configuration.
        expected_of_manifest: dict[str, Json] = {}
        for model in self.audit.task_models:
            network = model.network
            name = replace(network.name, dataset=network.zoo).columns()
            if model.manifest in self.audit.trained_manifests():
                expected_of_manifest[model.manifest] = name
            if network.source.fetched:
                files = self.bundle.json(network.fetched_manifest)["files"]
                expected_of_manifest[network.fetched_manifest] = {
                    **name,
                    "source": network.source.name,
                    "path": files[0]["path"],
                    "sha256": model_digest(network.source.name, [file["sha256"] for file in files]),
                    "settings": without_queries(network.checkpoint_settings()),
                }
        for path, expected in expected_of_manifest.items():
            manifest = self.bundle.json(path)
            yield from differences(name_of(path), {key: manifest.get(key) for key in expected}, expected)

    def _labels_of(self, task: str) -> pd.Series:
        frame = read_table(self.bundle.path(f"datasets/{task}.parquet"), DATASET)
        return frame.set_index("sample_id")["label"]

    def scores(self) -> Iterator[str]:
        """Scores, sweeps, sensitivity and the choice of models against the logits."""
        audit = self.audit.name
        subject = self._subject(self.audit.measures)
        scoring = check_and_score(
            self._files,
            subject=subject,
            checks=[LogitCheck.parse(check) for check in audit_steps.logit_checks(self.audit)],
            temperatures=self.audit.run.settings.great.temperatures,
            changes=self.audit.run.logit_changes,
        )
        selection = selection_of(scoring.checks, subject.models)
        yield from differences("models.json", self.bundle.json(self.bundle.of_audit("models.json")), selection)

        file = ScoresFile(self._scores)
        identity = {
            "audit": audit,
            "classes": self._manifest["classes"],
            "logits": scoring.identities,
            "dataset_digest": self._manifest["digest"],
            "parts": [[model.label, measure] for model, measure, _ in scoring.samples],
        }
        stored_identity = {name: file.identity.get(name) for name in identity}
        yield from differences(f"scores/{audit}.parquet", stored_identity, identity)
        for model, measure, frame in scoring.samples:
            stored = file.read(model, measure)[list(frame.columns)]
            expected = frame.reset_index(drop=True).astype(stored.dtypes.to_dict())
            yield from different_rows(f"scores/{audit}.parquet ({model.label}, {measure})", stored, expected)
        yield from self._different_table("sweeps", self._sweeps, scoring.sweeps)
        yield from self._different_table("sensitivity", self._folder.table_file("sensitivity"), scoring.sensitivity)

    def _different_table(self, name: str, path: Path, frame: pd.DataFrame) -> Iterator[str]:
        table = CATALOGUE[name]
        stored = read_table(path, table, expect={"audit": self.audit.name})
        yield from different_rows(path.name, stored, typed_frame(table, frame.to_dict("records")))

    @cached_property
    def excluded(self) -> list[str]:
        """Labels of the models that take no part, as the bundle says."""
        return [item["model"] for item in self.bundle.json(self.bundle.of_audit("models.json"))["excluded"]]

    def selection(self) -> Iterator[str]:
        """The choice of models against the answers in the scores; why others were left out only logits show."""
        recorded = self.bundle.json(self.bundle.of_audit("models.json"))
        refused = {item["model"]: item["reason"] for item in recorded["excluded"]}
        scores = ScoresFile(self._scores)
        measure_of_label = dict(scores.identity["parts"])
        samples = SampleList.read(self.bundle.path(self.audit.dataset.samples))
        path = f"results/scores/{self.audit.name}.parquet"
        checks = {}
        parts = []
        for params in audit_steps.logit_checks(self.audit):
            check = LogitCheck.parse(params)
            model = check.model
            if model.label in refused:
                accuracy = recorded["clean_accuracy"].get(model.label)
                checks[model] = CheckedModel(0, accuracy, accepted=False, words=refused[model.label])
                continue
            for measure in self.audit.measures.values():
                if measure.from_logits:
                    parts.append([model.label, measure.name])
                    names = scores.read(model, measure.name)["sample_id"]
                    if list(names) != list(samples.sample_id[samples.counted]):
                        yield f"{name_of(path)}: {measure.name} of {model.label} is not of every sample once"
            if model.label in measure_of_label:
                answers = scores.read(model, measure_of_label[model.label])
                checks[model] = check_answers(
                    answers["prediction"].to_numpy(),
                    answers["label"].to_numpy(),
                    self._manifest["classes"],
                    source=model.label,
                    gate=check.gate,
                )
        identity = {
            "audit": self.audit.name,
            "classes": self._manifest["classes"],
            "dataset_digest": self._manifest["digest"],
            "parts": parts,
        }
        stored_identity = {name: scores.identity.get(name) for name in identity}
        yield from differences(name_of(path), stored_identity, identity)
        if checks:
            expected = selection_of(checks, [model.name for model in self.audit.models])
            yield from self._different_selection(recorded, expected)

    def _different_selection(self, recorded: Json, expected: Json) -> Iterator[str]:
        # Of some warnings only logits tell.
        warned = list(expected["warned"])
        for warning in recorded["warned"]:
            if warning not in warned:
                warned.append(warning)
        yield from differences("models.json (warned)", _unordered(recorded["warned"]), _unordered(warned))
        yield from differences("models.json", without(recorded, ["warned"]), without(expected, ["warned"]))

    def tables(self) -> Iterator[str]:
        """Every table of the audit, calibration.json and comparison.json, against the values per sample."""
        settings = audit_steps.table_settings(self.audit)
        for record in settings.costs:
            name = name_of(record.path)
            record.path = str(self.bundle.folder / name) if name in self.bundle.digests else ""
        if not self.has_logits:
            settings.calibration = None
        values = self._values(self.audit.measures)
        lacks_temperatures = self.audit.settings.calibration is not None and not self.has_logits
        lacks_logits = bool(logit_files(self.audit)) and not self.has_logits

        for group in tabulate(values, self._files, audit=self.audit.name, settings=settings):
            for name, content in group.documents.items():
                if lacks_temperatures and name == "calibration":
                    continue
                stored = self.bundle.json(self.bundle.of_audit(f"{name}.json"))
                yield from differences(f"{name}.json", stored, content)
            for name, rows in group.frames.items():
                if lacks_logits and name in OF_LOGITS:
                    continue
                path = self._folder.table_file(name)
                identity, metadata = group.identities[name], read_identity(path)
                stored_identity = {key: metadata.get(key) for key in identity}
                yield from differences(f"{path.name} (metadata)", stored_identity, plain(identity))
                stored = read_table(path, CATALOGUE[name])
                expected = typed_frame(CATALOGUE[name], rows)
                if lacks_temperatures and "calibration" in stored:
                    stored, expected = _uncalibrated(stored), _uncalibrated(expected)
                yield from different_rows(path.name, stored, expected)

    def verdict(self) -> Iterator[str]:
        """The verdict, rule by rule, against the values per sample; and the files that it says it rests on."""
        settings, audit = self.audit.run.settings, self.audit
        attributes = audit.judged_attributes()
        judged_files = replace(
            self._files, attributes=self.bundle.path(attributes) if isinstance(attributes, str) else None
        )
        rates = audit.dataset.settings.label_error_rate
        verdict = verdict_on_audit(
            self._values(audit.judged_measures),
            judged_files,
            rules=audit.settings.gate,
            intervals=settings.intervals,
            label_error_rates=resolve_label_error_rates(rates, judged_files.manifest, judged_files.generator),
            fp_lambda=settings.disparity.fp_lambda,
        )
        findings = with_findings(verdict, self._folder.tables(), audit.measures)

        expected = findings.as_json()
        folder = f"{self.bundle.folder}/"
        made_from = expected["made_from"].items()
        expected["made_from"] = {f"results/{file.removeprefix(folder)}": digest for file, digest in made_from}
        stored = self.bundle.json(self.bundle.of_audit("verdict.json"))
        yield from differences("verdict.json", without(stored, OF_THE_RUN), without(plain(expected), OF_THE_RUN))

    # ---- the page ----

    def page(self) -> Iterator[str]:
        """The page against one made anew from the tables, the verdict and the configuration.

        Compressed numbers may differ as much as numbers of tables; every other letter must be the same.
        """
        audit, bundle = self.audit, self.bundle
        settings = PageSettings(
            title=audit.title,
            measures=audit.measures,
            models=audit_steps.described_models(audit),
            published_samples=audit.dataset.settings.published_accuracy,
            fp_lambda=audit.run.settings.disparity.fp_lambda,
        )
        pictures = [bundle.path(mapper.pictures) for mapper in audit.mappers]
        drawn = page_of_folder(self._folder, settings, sweeps=self._sweeps, pictures=pictures)
        stored, drawn = _page_of(bundle), drawn.rstrip("\n") + "\n"
        if stored == drawn:
            return
        if COMPRESSED.sub("H4sI", stored) != COMPRESSED.sub("H4sI", drawn):
            yield f"{PAGE}: not the page that follows from the other files; its words or drawings are others"
            return
        for stored_part, drawn_part in zip(COMPRESSED.findall(stored), COMPRESSED.findall(drawn), strict=True):
            if stored_part != drawn_part:
                yield from differences(PAGE, _unpacked(stored_part), _unpacked(drawn_part))


class _JudgedBy(RecordFile):
    # What is read of a verdict that another version may have written.
    time: datetime
    software: dict[str, str | bool | None]


def other_time_or_version(bundle: Bundle) -> Iterator[str]:
    """Whether the page says another time or version of its verdict than verdict.json, whose rest is not read."""
    verdict = _JudgedBy.read(bundle.audit_path("verdict.json"))
    judged_by = verdict.software
    if judged_by.keys() != software().keys():
        yield f"verdict.json: its software has other entries than {', '.join(software())}"
        return
    page = _page_of(bundle)
    statements = {
        "Judged": provenance.time_in_words(verdict.time.isoformat()),
        "By": f"{judged_by['name']} {version_in_words(judged_by)}",
    }
    for term, words in statements.items():
        if f"<dt>{term}</dt><dd>{html.escape(words)}</dd>" not in page:
            yield f"{PAGE}: does not say of its verdict, as verdict.json does: {term} {printable(words)}"


def other_software(bundle: Bundle) -> str:
    """Which version or commit judged, and which is installed; empty where they are the same."""
    judged_by = _JudgedBy.read(bundle.audit_path("verdict.json")).software
    if judged_by == software():
        return ""
    return f"its verdict is of {version_in_words(judged_by)}, this is {version_in_words(software())}"


def reason_not_to_draw(bundle: Bundle) -> str:
    """Why the page cannot be drawn again as it was: another version drew it than is installed; empty if it can."""
    other_version = other_software(bundle)
    if other_version:
        return other_version
    installed = software()
    if installed["changed"]:
        return f"the code of this {version_in_words(installed)}, which is not what its commit holds"

    recorded = dict(VERSIONS.findall(_page_of(bundle)))
    for name, version in versions().items():
        drawn_by = html.unescape(recorded.get(name, ""))
        if drawn_by != version:
            return f"{name} {printable(drawn_by or 'of no version')} drew it, here is {version}"
    return ""


def _page_of(bundle: Bundle) -> str:
    content = bundle.audit_path(PAGE).read_bytes()
    return without_checksums(content).decode("utf-8", errors="replace")


def _unpacked(text: str) -> object:
    # What is no JSON, the library that draws, is compared letter by letter.
    unpacking = zlib.decompressobj(wbits=31)
    content = unpacking.decompress(base64.b64decode(text), LARGEST).decode("utf-8", errors="replace")
    if unpacking.unconsumed_tail or unpacking.unused_data:
        return "larger than any part of a page, or more than one"
    try:
        return _with_numbers(json.loads(content))
    except ValueError:
        return content


def _with_numbers(data: object) -> object:
    # Packed arrays as lists of numbers, so that these are compared as numbers.
    if isinstance(data, list):
        return [_with_numbers(item) for item in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {"shape", "f64"} and isinstance(data["f64"], str):
        content = base64.b64decode(data["f64"])
        numbers = np.frombuffer(content[: len(content) // 8 * 8], dtype="<f8").tolist()
        return {"shape": data["shape"], "numbers": numbers, "bytes": len(content)}
    return {key: _with_numbers(value) for key, value in data.items()}


# ---- differences ----


def plain(data: object) -> Any:
    """Data as they are read back from JSON, in which numbers that are none are null."""
    return json.loads(json.dumps(data, default=lambda value: value.tolist()), parse_constant=lambda _: None)


def _unordered(items: list[object]) -> list[str]:
    return sorted(map(str, items))


def _uncalibrated(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["calibration"] == UNCALIBRATED].reset_index(drop=True)


def other_labels(path: str, frame: pd.DataFrame, labels: pd.Series) -> Iterator[str]:
    """Yield the first row with another label than its sample.

    Parameters
    ----------
    path : str
        File that the sentence names.
    frame : DataFrame
        Rows with sample_id and label.
    labels : Series
        Labels of the dataset by sample_id.
    """
    expected = labels.reindex(frame["sample_id"])
    wrong = expected.to_numpy() != frame["label"].to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        name = printable(frame["sample_id"].iloc[row])
        yield f"{path}: row {row}: label {frame['label'].iloc[row]} of {name}, which the dataset does not say"


def differences(file: str, stored: object, expected: object) -> Iterator[str]:
    """Yield the first place at which plain data differ.

    Parameters
    ----------
    file : str
        File that the sentence begins with.
    stored, expected : object
        What it holds and what follows from the other files: JSON values, or arrays that become lists.
    """
    key_path = _first_difference(plain(stored), plain(expected))
    if key_path is not None:
        yield f"{file}: {printable(' > '.join(key_path)) or 'it'} is not what follows from the other files"


def _first_difference(stored: object, expected: object) -> list[str] | None:
    # Keys and positions to the first value that differs; None where none does.
    if isinstance(stored, dict) and isinstance(expected, dict):
        if stored.keys() != expected.keys():
            return [str(min(stored.keys() ^ expected.keys()))]
        keys: list[Any] = list(expected)
    elif isinstance(stored, list) and isinstance(expected, list) and len(stored) == len(expected):
        keys = list(range(len(expected)))
    elif _is_number(stored) and _is_number(expected):
        return None if math.isclose(stored, expected, rel_tol=RELATIVE, abs_tol=ABSOLUTE) else []
    else:
        return None if type(stored) is type(expected) and stored == expected else []
    for key in keys:
        key_path = _first_difference(stored[key], expected[key])
        if key_path is not None:
            return [str(key), *key_path]
    return None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def different_rows(file: str, stored: pd.DataFrame, expected: pd.DataFrame) -> Iterator[str]:
    """Yield the first value of a table that differs from what follows from the other files, or the number of rows."""
    if len(stored) != len(expected):
        yield f"{file}: {counted(len(stored), 'row')}, where the other files lead to {len(expected):,}"
        return
    if stored.equals(expected):
        return
    for name in expected.columns:
        same = _same_values(stored[name], expected[name])
        if not same.all():
            row = int(same.argmin())
            value = printable(stored[name].iloc[row])
            yield f"{file}: {name} of row {row} is {value}, not {expected[name].iloc[row]}"
            return


def _same_values(stored: pd.Series, expected: pd.Series) -> np.ndarray:
    # Whether the values of each row are the same, (n,).
    if pd.api.types.is_float_dtype(expected.dtype):
        relative = RELATIVE_OF_FLOAT32 if expected.dtype == np.float32 else RELATIVE
        return np.isclose(stored, expected, rtol=relative, atol=ABSOLUTE, equal_nan=True)
    if expected.map(lambda item: isinstance(item, list)).any():
        same = []
        for stored_list, expected_list in zip(stored, expected, strict=True):
            same.append(_first_difference(plain(list(stored_list)), plain(list(expected_list))) is None)
        return np.array(same)
    both_missing = stored.isna() & expected.isna()
    return ((stored == expected) | both_missing).to_numpy(dtype=bool)
