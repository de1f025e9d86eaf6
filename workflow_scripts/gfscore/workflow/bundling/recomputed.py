"""What the files of a bundle must hold, computed again from what they rest on, and where they differ from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from gfscore.audit.checks import check_answers, selection_of
from gfscore.audit.class_scores import resolve_label_error_rates
from gfscore.audit.judgement import judgement
from gfscore.audit.samples import ScoresFile
from gfscore.audit.scoring import score
from gfscore.audit.settings import TableSettings
from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.audit.tables import read_audit_tables
from gfscore.audit.tabulation import tabulate
from gfscore.audit.values import AuditSubject, AuditValues
from gfscore.audit.verdicts.findings import with_findings
from gfscore.core.identity import UNCALIBRATED, ModelName, label_of
from gfscore.measures.samples import table_of
from gfscore.tables.parquet_tables import read_identity, read_table, typed_frame
from gfscore.tables.table import DATASET
from gfscore.workflow.bundling.contents import Bundle, inputs_of_tables, logit_files
from gfscore.workflow.bundling.differences import differences, different_rows, other_labels, plain, without
from gfscore.workflow.catalogue import CATALOGUE
from gfscore.workflow.plan import PlannedAudit

OF_LOGITS = ("calibration", "falsification")
"""Tables that cannot be made without logits; others hold rows at a chosen temperature that cannot."""

OF_THE_RUN = ("software", "time", "version", "commit")
"""Entries of a verdict on the run that judged, which cannot be checked against the bundle."""


@dataclass(frozen=True)
class Recomputed:
    """A bundle with its resolved configuration; each method yields what differs, as sentences that begin with a file.

    InputError is raised where something cannot be read, or the values cannot be audited.
    """

    bundle: Bundle
    audit: PlannedAudit

    @cached_property
    def has_logits(self) -> bool:
        """Whether the logits are in the bundle."""
        names = logit_files(self.audit)
        return bool(names) and all(name in self.bundle.digests for name in names)

    @cached_property
    def _files(self):
        # Paths in the bundle, by the names that the steps give them; None for a file that the audit does not have.
        named = inputs_of_tables(self.audit)
        single = {name: named[name] or None for name in ("generator", "attributes")}
        return {
            name: [*map(self.bundle.path, paths)] if isinstance(paths, list) else paths and self.bundle.path(paths)
            for name, paths in (named | single).items()
        }

    def _subject(self, subject):
        # Without logits there is no value at a chosen temperature.
        if self.has_logits:
            names = logit_files(self.audit)
            return subject | {"logits": dict(zip(subject["logits"], map(self.bundle.path, names), strict=True))}
        return subject | {"logits": {}, "calibrated_measure": None}

    @cached_property
    def _dataset(self):
        path = self.bundle.path(self.audit.dataset.samples)
        manifest = self.bundle.json(self.audit.dataset.manifest)
        return path, manifest, read_table(path, DATASET, expect={"dataset_digest": manifest["digest"]})

    def dataset(self) -> Iterator[str]:
        """The manifest of the dataset against its samples and the configuration."""
        path, manifest, samples = self._dataset
        name, classes = self.audit.dataset.name, len(manifest["classes"])
        labels = samples["label"].to_numpy()
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
            yield f"{path.name}: a label is none of the {classes} classes"
            return
        if samples["sample_id"].duplicated().any():
            yield f"{path.name}: a sample stands there twice"
        expected = {
            "dataset": name,
            "samples": len(samples),
            "samples_per_class": np.bincount(labels, minlength=classes).tolist(),
            "classes": self.audit.dataset.entry["classes"] or manifest["classes"],
            "settings": self.audit.dataset.image_settings(),
        }
        found = {key: manifest.get(key) for key in expected}
        yield from differences(f"datasets/{name}.json", found, expected)

    def labels(self) -> Iterator[str]:
        """Names and labels of the samples in every table of values per sample against those of the dataset."""
        labels_of = cache(self._labels_of)
        label_of_sample = labels_of(self.audit.dataset.name)
        for path in self.audit.sample_files(self.audit.measures.values()):
            file = self.bundle.path(path)
            kind = self.audit.measures[path.split("/")[2]].kind.name
            yield from other_labels(path, read_table(file, table_of(kind)), label_of_sample)
        for path in self.audit.projection_files():
            frame = read_table(self.bundle.path(path), CATALOGUE[read_identity(self.bundle.path(path))["table"]])
            yield from other_labels(path, frame, labels_of(path.split("/")[3]))
        path = f"scores/{self.bundle.audit}.parquet"
        yield from other_labels(path, read_table(self.bundle.path(path), CATALOGUE["scores"]), label_of_sample)

    def _labels_of(self, task):
        frame = read_table(self.bundle.path(f"datasets/{task}.parquet"), DATASET)
        return frame.set_index("sample_id")["label"]

    def scores(self) -> Iterator[str]:
        """Scores, sweeps, sensitivity and the choice of models against the logits."""
        config, audit = self.audit.run.config, self.audit.name
        great = config["great"]
        subject = self._subject(self.audit.subject())
        scoring = score(
            self._files,
            subject=AuditSubject.parse(subject),
            checks=self.audit.logit_checks(),
            temperatures={end: great["temperatures"][end] for end in ("low", "high")},
            changes={
                "shifts": great["shifts"], "scales": great["scales"], "lam": config["disparity"]["fp_lambda"],
            },
        )  # fmt: skip
        made = selection_of(scoring.checks, subject["models"])
        yield from differences("models.json", self.bundle.json(self.bundle.of_audit("models.json")), made)
        file = ScoresFile(self._files["scores"])
        about = {"audit": audit, "classes": self._dataset[1]["classes"], "logits": scoring.identities}
        parts = [[model.label, measure] for model, measure, _ in scoring.parts]
        about |= {"dataset_digest": self._dataset[1]["digest"], "parts": parts}
        found = {name: file.identity.get(name) for name in about}
        yield from differences(f"scores/{audit}.parquet", found, about)
        for model, measure, frame in scoring.parts:
            stored = file.read(model, measure)[list(frame.columns)]
            made_frame = frame.reset_index(drop=True).astype(stored.dtypes.to_dict())
            yield from different_rows(f"scores/{audit}.parquet ({model.label}, {measure})", stored, made_frame)
        for name, path, frame in (
            ("sweeps", self._files["sweeps"], scoring.sweeps),
            ("sensitivity", self._audit_table("sensitivity"), scoring.sensitivity),
        ):
            table = CATALOGUE[name]
            made_frame = typed_frame(table, frame.to_dict("records"))
            yield from different_rows(path.name, read_table(path, table, expect={"audit": audit}), made_frame)

    def selection(self) -> Iterator[str]:
        """The choice of models against the answers in the scores; why others were left out only logits show."""
        stated = self.bundle.json(self.bundle.of_audit("models.json"))
        refused = {item["model"]: item["reason"] for item in stated["excluded"]}
        file, checks = ScoresFile(self._files["scores"]), []
        measure_of_label = {label: measure for label, measure in file.identity["parts"]}
        for asked in self.audit.logit_checks():
            model = asked["model"]
            label = label_of(model)
            if label in refused:
                left_out = {"accepted": False, "words": refused[label], "warnings": []}
                checks.append({**model, **left_out, "clean_accuracy": stated["clean_accuracy"].get(label)})
            elif label in measure_of_label:
                answers = file.read(ModelName.from_columns(model), measure_of_label[label])
                predicted, labels = answers["prediction"].to_numpy(), answers["label"].to_numpy()
                names = self._dataset[1]["classes"]
                checked = check_answers(predicted, labels, names, source=label, gate=asked["gate"])
                checks.append({**model, **checked})
        if checks:
            made = selection_of(checks, [model.name.columns() for model in self.audit.models])
            # Of some warnings only logits tell.
            warned = [*made["warned"], *(item for item in stated["warned"] if item not in made["warned"])]
            unordered = [sorted(map(str, warnings)) for warnings in (stated["warned"], warned)]
            yield from differences("models.json (warned)", *unordered)
            yield from differences("models.json", without(stated, ["warned"]), without(made, ["warned"]))

    def tables(self) -> Iterator[str]:
        """Every table of the audit, calibration.json and comparison.json, against the values per sample."""
        config, audit = self.audit.run.config, self.audit.name
        settings = self.audit.table_settings()
        costs = [
            record | {"path": self.bundle.folder / name if (name := record["path"].removeprefix("results/"))
            in self.bundle.digests else ""}
            for record in settings["costs"]
        ]  # fmt: skip
        samples = [self.bundle.path(path) for path in self.audit.sample_files(self.audit.measures.values())]
        inputs = AuditValues.from_params(self._subject(self.audit.subject()), self._files | {"samples": samples})
        chosen = config["audits"][audit]["calibration"] and not self.has_logits
        for group in tabulate(inputs, self._files, audit=audit, settings=TableSettings(**settings | {"costs": costs})):
            for name, content in group.documents.items():
                if not (chosen and name == "calibration"):
                    found = self.bundle.json(self.bundle.of_audit(f"{name}.json"))
                    yield from differences(f"{name}.json", found, content)
            for name, rows in group.frames.items():
                stated = group.identities[name]
                if not self.has_logits and name in OF_LOGITS and self.audit.logit_files():
                    continue
                path, table = self._audit_table(name), CATALOGUE[name]
                identity = read_identity(path)
                known = {key: identity.get(key) for key in stated}
                yield from differences(f"{path.name} (metadata)", known, plain(stated))
                found, frame = read_table(path, table), typed_frame(table, rows)
                if chosen and "calibration" in found:
                    found = found[found["calibration"] == UNCALIBRATED].reset_index(drop=True)
                    frame = frame[frame["calibration"] == UNCALIBRATED].reset_index(drop=True)
                yield from different_rows(path.name, found, frame)

    def verdict(self) -> Iterator[str]:
        """The verdict, rule by rule, against the values per sample; and the files that it says it rests on."""
        config, audit = self.audit.run.config, self.audit.name
        samples = [self.bundle.path(path) for path in self.audit.sample_files(self.audit.judged_measures())]
        attributes = self.audit.judged_attributes()
        files = self._files | {"samples": samples, "attributes": attributes and self.bundle.path(str(attributes))}
        inputs = AuditValues.from_params(self._subject(self.audit.judged_subject()), files)
        stated = self.audit.dataset.entry["label_error_rate"]
        verdict = judgement(
            inputs,
            files,
            rules=self.audit.rules,
            intervals=config["intervals"],
            label_error_rates=resolve_label_error_rates(stated, files["manifest"], files["generator"]),
            fp_lambda=config["disparity"]["fp_lambda"],
        )
        tables = {name: self._audit_table(name) for name in TABLES_OF_AUDIT}
        tables |= {
            f"{name}_json": self.bundle.path(self.bundle.of_audit(f"{name}.json"))
            for name in ("calibration", "comparison")
        }
        made = with_findings(verdict, read_audit_tables(tables, audit=audit), self.audit.measure_entries()).as_json()
        folder = f"{self.bundle.folder}/"
        made["made_from"] = {
            f"results/{file.removeprefix(folder)}": digest for file, digest in made["made_from"].items()
        }
        stored = self.bundle.json(self.bundle.of_audit("verdict.json"))
        yield from differences("verdict.json", without(stored, OF_THE_RUN), without(plain(made), OF_THE_RUN))

    def _audit_table(self, name):
        return self.bundle.path(self.bundle.of_audit(f"{name}.parquet"))
