"""The plan of a run: its audits, and the files and params of their steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from gfscore.audit.settings import ATTACK_DISTANCE, GroupSettings
from gfscore.audit.step_params import (
    JobRecord,
    LogitChanges,
    TableSettings,
    TaskSettings,
    TemperatureSearch,
    TrainedModel,
)
from gfscore.audit.table_names import OTHER_FILES, TABLES_OF_AUDIT
from gfscore.audit.verdicts.gate_rules import DECLINE, FALSIFICATION, GROUP_GAP, RuleSettings
from gfscore.core.identity import ModelName
from gfscore.core.mappings import by_name, only
from gfscore.core.settings import Half, PlainSettings
from gfscore.measures import NamedMeasure, entries_of, named_measures, names_of_kind
from gfscore.measures.robust import PROVEN
from gfscore.networks import leaderboard
from gfscore.networks.sources import adjusted
from gfscore.workflow.audit_settings import AuditSettings, RunSettings
from gfscore.workflow.entries import (
    CHECKPOINTS,
    SOURCES_OF_VALUES,
    PlannedDataset,
    PlannedMapper,
    PlannedModel,
    PlannedOffsets,
    choice_name,
    planned_datasets,
)
from gfscore.workflow.remedies import PlannedRemedy, adjusted_name, half_name
from gfscore.workflow.user_files import STATEMENT, OptionalFile, digest, present

NOTHING = "(?!)"
"""Regular expression that matches nothing."""

STEPS = {"logits": "score_models", "network": "measure_model"}
"""Step that computes a measure, by the input that its kind needs."""

Params = dict[str, Any]
"""Parameters of a step as plain values, by which Snakemake tells whether it has to run again."""

EXPORTS = ("latex", "model-cards", "croissant", "ro-crate")
"""Folders of an audit's exports."""


def one_of(names: Iterable[str]) -> str:
    """Regular expression that matches exactly these names; nothing if there are none."""
    return "|".join(map(re.escape, names)) or NOTHING


def step_of(measure: NamedMeasure) -> str:
    """Step that computes a measure, for models whose values are not imported."""
    return STEPS[measure.kind.needs]


def zoo_models(models: Mapping[str, Mapping[str, Mapping[str, PlainSettings]]], zoo: str, threat: str) -> list[str]:
    """Names of a zoo's models for one threat model.

    Parameters
    ----------
    models : mapping
        Section `models` of the configuration: zoo, then threat model, then name to entry.

    Returns
    -------
    list of str
        Entries of the configuration first, then the models of RobustBench that can be loaded and have no entry.
    """
    names = list(models.get(zoo, {}).get(threat, {}))
    for listing in leaderboard.listings(zoo, threat):
        if listing.supported and listing.model not in names:
            names.append(listing.model)
    return names


def model_entries(models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[tuple[str, str, str, Any]]:
    """Zoo, threat model, name and entry of each model in the section `models` of the configuration."""
    for zoo, threats in models.items():
        for threat, entries in threats.items():
            for name, entry in entries.items():
                yield zoo, threat, name, entry


class Run:
    """A complete configuration (gfscore.workflow.resolving) as objects, each made once.

    Parameters
    ----------
    config : mapping
        Complete configuration as plain values, by section.

    Attributes
    ----------
    audits : dict of str to PlannedAudit
        Every audit of the configuration.
    datasets : dict of str to PlannedDataset
    mappers : dict of str to PlannedMapper
    """

    def __init__(self, config: PlainSettings) -> None:
        """Make the objects; settings are parsed when they are needed."""
        self.config = config
        self.datasets = planned_datasets(config["datasets"])
        self.mappers = {name: PlannedMapper(name, entry) for name, entry in config["mappers"].items()}
        self.audits = {name: PlannedAudit(name, self, entry) for name, entry in config["audits"].items()}
        self._models: dict[tuple[str, str, str, str], PlannedModel] = {}

    @cached_property
    def settings(self) -> RunSettings:
        """Settings that all audits share."""
        return RunSettings.model_validate(only(self.config, RunSettings.model_fields))

    @property
    def logit_changes(self) -> LogitChanges:
        """Changes of the logits whose effect is tabulated."""
        settings = self.settings
        return LogitChanges(
            shifts=settings.great.shifts, scales=settings.great.scales, lam=settings.disparity.fp_lambda
        )

    @cached_property
    def measures(self) -> dict[str, NamedMeasure]:
        """Measures of the configuration by name."""
        return named_measures(self.config["measures"])

    @property
    def selected(self) -> list[PlannedAudit]:
        """Audits that are run, in the order of the setting `run`."""
        return [self.audits[name] for name in self.config["run"]]

    @property
    def searches_proofs(self) -> bool:
        """Whether an audit that is run searches proofs."""
        return any(names_of_kind(audit.measures, PROVEN) for audit in self.selected)

    # ---- models ----

    def model(self, dataset: str, threat: str, model: str) -> PlannedModel:
        """Model on the dataset that it is evaluated on, from its entry or else from RobustBench's table."""
        zoo = self.datasets[dataset].zoo
        assert zoo is not None  # of data without models nobody asks for one
        return self._model(dataset, zoo, threat, model)

    def zoo_model(self, zoo: str, threat: str, model: str) -> PlannedModel:
        """Model of a zoo, where no data are meant; the name has the zoo in place of a dataset."""
        return self._model(zoo, zoo, threat, model)

    def _model(self, dataset: str, zoo: str, threat: str, model: str) -> PlannedModel:
        key = (dataset, zoo, threat, model)
        if key not in self._models:
            entry = self.config["models"].get(zoo, {}).get(threat, {}).get(model)
            if entry is None:
                entry = leaderboard.entry(zoo, threat, model, folder=CHECKPOINTS)
            offsets = None
            if entry["source"] == adjusted.SOURCE.name:
                settings = adjusted.Adjusted.model_validate(entry)
                original_threat, _, original = settings.of.partition("/")
                offsets = PlannedOffsets(
                    model=self._model(settings.choose_on, zoo, original_threat, original),
                    settings=settings.choosing,
                    measure=self.measures[settings.measure],
                )
            self._models[key] = PlannedModel(ModelName(dataset, threat, model), zoo, entry, offsets)
        return self._models[key]

    @cached_property
    def offset_choices(self) -> dict[str, PlannedOffsets]:
        """Offsets of one of the models of each choice (objective and attacks), by the name of the choice."""
        choices = {}
        for model in self._entries_from(adjusted.SOURCE.name):
            if model.offsets:
                choices[model.offsets.choice] = model.offsets
        return choices

    def zoo_models(self, zoo: str, threat: str) -> list[str]:
        """Names of a zoo's models for one threat model: entries, then those of RobustBench without an entry."""
        return zoo_models(self.config["models"], zoo, threat)

    def classifier_files(self, model: PlannedModel) -> dict[str, OptionalFile | list[Path]]:
        """Inputs, by name, of a step in which a model classifies the images of its dataset."""
        dataset = self.datasets[model.name.dataset]
        files: dict[str, OptionalFile | list[Path]] = {
            "dataset": dataset.manifest,
            "images": dataset.stored_images(),
            "checkpoint": model.weights,
            "model": model.manifest,
            "architecture": model.architecture_files(),
        }
        if dataset.settings.half is not None:
            files["samples"] = dataset.samples
        if model.offsets:
            files["offsets"] = model.offsets.file
        return files

    def _entries_from(self, source: str) -> Iterator[PlannedModel]:
        for zoo, threat, name, entry in model_entries(self.config["models"]):
            if entry["source"] == source:
                yield self.zoo_model(zoo, threat, name)

    # ---- names that a wildcard may have, as regular expressions ----

    def models_from(self, source: str) -> str:
        """Matches "dataset/threat/model" of every model from a source, on each dataset that its zoo is evaluated on."""
        models = list(self._entries_from(source))
        names = []
        for dataset in self.datasets.values():
            for model in models:
                if model.zoo == dataset.zoo:
                    names.append(f"{dataset.name}/{model.label}")
        return one_of(names)

    def drawn_datasets(self) -> str:
        """Matches the name of every dataset that the workflow draws."""
        names = []
        for dataset in self.datasets.values():
            if dataset.source.drawn:
                names.append(dataset.name)
        return one_of(names)

    def network_measures(self) -> str:
        """Matches the names of the measures that need a network."""
        names = []
        for measure in self.measures.values():
            if measure.kind.needs == "network":
                names.append(measure.name)
        return one_of(names)

    # ---- what a run says before its first job ----

    def uncompared_datasets(self) -> list[str]:
        """Datasets, sorted, of the selected audits whose published clean accuracies are compared with nothing."""
        names = set()
        for audit in self.selected:
            if audit.dataset.settings.published_accuracy is not None:
                continue
            for model in audit.models:
                if model.settings.published_clean_accuracy is not None:
                    names.add(audit.dataset.name)
        return sorted(names)


@dataclass(frozen=True, eq=False)
class PlannedAudit:
    """One audit of a complete configuration: what it is about, and the files and params of its steps.

    A target of the Snakefile names its file and every file that it depends on: a failed step deletes its output, and
    files that depend on a deleted one must not count as up to date.

    Parameters
    ----------
    name : str
        Key of the section `audits`.
    run : Run
        Configuration that the audit belongs to.
    entry : mapping
        Complete settings as plain values, as params and the resolved configuration hold them.
    """

    name: str
    run: Run
    entry: PlainSettings

    @cached_property
    def settings(self) -> AuditSettings:
        """Settings of the audit."""
        return AuditSettings.model_validate(self.entry)

    @property
    def title(self) -> str:
        """Heading of the report."""
        return self.entry["title"]

    @property
    def folder(self) -> str:
        """Folder of the results."""
        return f"results/audits/{self.name}"

    # ---- datasets, models, measures, mappers ----

    @cached_property
    def dataset(self) -> PlannedDataset:
        """Dataset evaluated."""
        return self.run.datasets[self.settings.dataset]

    @cached_property
    def tasks(self) -> list[PlannedDataset]:
        """Datasets whose labels the models of the projections predict: the one evaluated, then more of its images."""
        return [self.dataset, *self.more_tasks]

    @cached_property
    def more_tasks(self) -> list[PlannedDataset]:
        """Datasets of the same images with other labels."""
        return [self.run.datasets[name] for name in self.settings.tasks]

    @cached_property
    def models(self) -> list[PlannedModel]:
        """Models in the order of the configuration, on the dataset evaluated."""
        return self.models_on(self.dataset)

    def models_on(self, task: PlannedDataset) -> list[PlannedModel]:
        """Models of the same names in the zoo of one of the tasks."""
        models = []
        for name in self.settings.models:
            _, threat, model = name.split("/")
            models.append(self.run.model(task.name, threat, model))
        return models

    @cached_property
    def task_models(self) -> list[PlannedModel]:
        """Models of all tasks, the dataset evaluated first."""
        models = []
        for task in self.tasks:
            models += self.models_on(task)
        return models

    @cached_property
    def measures(self) -> dict[str, NamedMeasure]:
        """Measures by name, in the order of the configuration."""
        return only(self.run.measures, self.settings.measures)

    @property
    def distance_measures(self) -> list[str]:
        """Names of the measures of l2 attack distances."""
        names = []
        for measure in self.measures.values():
            if measure.kind.name == "minimal" and getattr(measure.settings, "norm", None) == "l2":
                names.append(measure.name)
        return names

    @property
    def calibrating_distances(self) -> str | None:
        """Measure of l2 attack distances that the audit is calibrated with; None without."""
        calibration = self.settings.calibration
        if calibration is None or ATTACK_DISTANCE not in (calibration.objectives or ()):
            return None
        names = self.distance_measures
        return names[0] if names else None

    @property
    def mapper_names(self) -> list[str]:
        """Names of the mappers whose latent dimensions predictions are held against."""
        projection = self.settings.projection or []
        return [projection] if isinstance(projection, str) else projection

    @cached_property
    def mappers(self) -> list[PlannedMapper]:
        """Mappers whose latent dimensions predictions are held against."""
        return [self.run.mappers[name] for name in self.mapper_names]

    @cached_property
    def remedies(self) -> list[PlannedRemedy]:
        """Models with offsets beside the same models without, on the judging half; empty without a remedy."""
        settings = self.settings.remedy
        if settings is None:
            return []
        assert settings.measure is not None  # the resolver fills in the default
        judging = self.run.datasets[half_name(self.dataset.name, "judging")]
        measure = self.measures[settings.measure]
        choice = choice_name(settings.choosing, measure.entry())
        remedies = []
        for name in settings.models:
            _, threat, model = name.split("/")
            by_strength = {}
            for strength in settings.strengths:
                name_with_offsets = adjusted_name(model, choice, strength)
                by_strength[float(strength)] = self.run.model(judging.name, threat, name_with_offsets)
            remedies.append(PlannedRemedy(self.run.model(judging.name, threat, model), by_strength, measure, judging))
        return remedies

    @property
    def halves(self) -> list[PlannedDataset]:
        """Halves of the dataset that remedies are chosen on and judged on; empty without a remedy."""
        if self.settings.remedy is None:
            return []
        return [self.run.datasets[half_name(self.dataset.name, half)] for half in get_args(Half)]

    @property
    def remedy_models(self) -> list[PlannedModel]:
        """Models of the remedies, without and with offsets."""
        models = []
        for remedy in self.remedies:
            models += remedy.models
        return models

    @property
    def every_model(self) -> list[PlannedModel]:
        """Models of all tasks and remedies, and those that offsets are added to."""
        models = [*self.task_models, *self.remedy_models]
        for model in [*models]:
            if model.offsets:
                models.append(model.offsets.model)
        return models

    @property
    def every_measure(self) -> dict[str, NamedMeasure]:
        """Measures of the audit, and those that the offsets of its models are chosen under, by name."""
        measures = dict(self.measures)
        for model in self.every_model:
            if model.offsets:
                measures.setdefault(model.offsets.measure.name, model.offsets.measure)
        return measures

    @cached_property
    def datasets(self) -> list[PlannedDataset]:
        """All datasets for evaluation or training, sorted by name."""
        names = {task.name for task in self.tasks}
        names.update(model.name.dataset for model in self.every_model)
        for model in self.task_models:
            names.update(model.training_datasets)
        for mapper in self.mappers:
            names.update([mapper.settings.train_on, mapper.settings.evaluate_on])
        if self.settings.groups:
            for task in self.tasks:
                if task.reference_dataset:
                    names.add(task.reference_dataset)
        return [self.run.datasets[name] for name in sorted(names)]

    # ---- the gate ----

    @property
    def rules(self) -> Sequence[RuleSettings]:
        """Rules of the gate."""
        return self.settings.gate

    def judged_measures(self) -> list[NamedMeasure]:
        """Measures that the gate reads: of its rules, what derived ones are made of, and attacks that falsify scores.

        If none of these is computed from logits, a measure from logits is added, to check that one network gave all
        values.
        """
        names = set()
        for rule in self.rules:
            names.add(rule.measure)
            names.update(member.name for member in self.measures[rule.measure].members(self.measures))
            if rule.statistic == FALSIFICATION:
                names.update(self.distance_measures)
        from_logits = [name for name, measure in self.measures.items() if measure.from_logits]
        if names and names.isdisjoint(from_logits):
            names.update(from_logits[:1])
        return [measure for name, measure in self.measures.items() if name in names]

    @property
    def release_statement(self) -> OptionalFile:
        """Statement of the bundle of the last release; empty without one, and for a missing one."""
        release = self.settings.last_release
        return present(f"{release.bundle}/{STATEMENT}") if release else []

    def release_measures(self) -> dict[str, NamedMeasure]:
        """Measures in which classes must not decline since the last release, by name."""
        names = [rule.measure for rule in self.rules if rule.statistic == DECLINE]
        return only(self.measures, names)

    def release_values(self) -> OptionalFile:
        """Values per sample of the last release; empty where no rule compares with them."""
        return f"results/releases/{self.name}.parquet" if self.release_measures() else []

    def positive_class(self, task: PlannedDataset) -> str | None:
        """Positive class of one of the tasks; None for each class against the others."""
        groups = self.settings.groups
        positive = groups.positive if groups else None
        if isinstance(positive, Mapping):
            return positive.get(task.name)
        return positive if task is self.dataset else None

    # ---- files that the steps read ----

    def logit_files(self) -> list[str]:
        """Paths of the models' logits, without missing files of the user."""
        files = []
        for model in self.models:
            if model.has_logits and present(model.logits):
                files.append(model.logits)
        return files

    def sample_files(self, measures: Iterable[NamedMeasure]) -> list[str]:
        """Paths of the samples tables of these measures, model by model.

        Measures from logits have none where a model has logits: their values are in results/scores. Derived measures
        have none: their values are made of the others'.
        """
        stored = [measure for measure in measures if not measure.derived]
        files = []
        for model in self.models:
            for measure in stored:
                if measure.from_logits and model.has_logits:
                    continue
                files.append(model.samples(measure.name))
        return files

    def trained_manifests(self) -> list[str]:
        """Manifests of the classifiers that the workflow trains, which contain the measured robust accuracy."""
        manifests = []
        for model in self.models:
            if model.source.name == "trained":
                manifests.append(model.manifest)
        return manifests

    def fetched_manifests(self) -> list[str]:
        """Manifests of the checkpoints and backbones that are downloaded or that the user provides."""
        manifests = []
        for model in self.task_models:
            if model.network.source.fetched:
                manifests.append(model.fetched_manifest)
        return manifests

    def attributes_table(self) -> OptionalFile:
        """Attributes of the samples; empty without groups."""
        return self.dataset.attributes_table if self.settings.groups else []

    def judged_attributes(self) -> OptionalFile:
        """Attributes of the samples; empty unless a rule of the gate judges groups."""
        judged = any(rule.statistic == GROUP_GAP for rule in self.rules)
        return self.attributes_table() if judged else []

    def projection_files(self) -> list[str]:
        """Paths of the projections by mapper, then task, then model, in the order of the configuration."""
        files = []
        for mapper in self.mappers:
            files += [mapper.projection(model) for model in self.task_models]
        return files

    def table_inputs(self) -> dict[str, OptionalFile]:
        """Inputs, by name, of the step that makes the tables, besides values per sample and logits."""
        return {
            "selection": f"{self.folder}/models.json",
            "scores": f"results/scores/{self.name}.parquet",
            "sweeps": f"results/sweeps/{self.name}.parquet",
            "dataset": self.dataset.samples,
            "manifest": self.dataset.manifest,
            "manifests": self.trained_manifests(),
            "generator": self.dataset.generator_manifest,
            "attributes": self.attributes_table(),
            "mappers": [mapper.manifest for mapper in self.mappers],
            "projections": self.projection_files(),
            **self.task_files(),
            **self.remedy_files(),
        }

    def verdict_inputs(self) -> dict[str, OptionalFile]:
        """Inputs, by name, of the step that judges the audit, besides its tables and values per sample."""
        return {
            "scores": f"results/scores/{self.name}.parquet",
            "dataset": self.dataset.samples,
            "manifest": self.dataset.manifest,
            "configuration": f"{self.folder}/config.yaml",
            "generator": self.dataset.generator_manifest,
            "attributes": self.judged_attributes(),
            "release": self.release_values(),
            "checkpoints": self.fetched_manifests(),
        }

    def task_files(self) -> dict[str, list[str]]:
        """Input files of the tables for tasks beside the audit's own dataset, by the name of the input.

        `task_manifests` and `task_datasets`, one per task; `task_logits`, one per task and model; `task_attributes`,
        one per task of an audit that compares groups.
        """
        logits = []
        for task in self.more_tasks:
            logits += [model.logits for model in self.models_on(task)]
        compared = self.more_tasks if self.settings.groups else []
        return {
            "task_manifests": [task.manifest for task in self.more_tasks],
            "task_datasets": [task.samples for task in self.more_tasks],
            "task_attributes": [task.attributes_table for task in compared],
            "task_logits": logits,
        }

    def remedy_files(self) -> dict[str, list[str]]:
        """Input files of the tables for remedies, by the name of the input; empty without a remedy.

        `remedy_datasets` and `remedy_offsets`, one for each remedy; `remedy_logits`, of the model without and with the
        whole offsets; `remedy_samples`, of the model without offsets and with the offsets of every strength.
        """
        if not self.remedies:
            return {}
        files: dict[str, list[str]] = {
            "remedy_datasets": [],
            "remedy_offsets": [],
            "remedy_logits": [],
            "remedy_samples": [],
        }
        for remedy in self.remedies:
            files["remedy_datasets"].append(remedy.dataset.samples)
            files["remedy_offsets"].append(remedy.offsets)
            files["remedy_logits"] += remedy.logit_files()
            files["remedy_samples"] += remedy.sample_files()
        return files

    # ---- files of the targets ----

    def audit_results(self) -> list[str]:
        """All files in results/audits/<audit>/, so that any missing one is made again."""
        names = []
        for table in TABLES_OF_AUDIT:
            names += [f"{table}.parquet", f"{table}.csv"]
        names += [*OTHER_FILES, "figures"]
        return [f"{self.folder}/{name}" for name in names]

    def input_results(self) -> list[str]:
        """Datasets that are not drawn from a generator, and fetched checkpoints: what may need a network."""
        files = []
        for dataset in self.datasets:
            if not dataset.source.drawn:
                files += [dataset.manifest, dataset.samples]
        return files + self.fetched_manifests()

    def logit_results(self) -> list[str]:
        """Checked logits, and all files that they depend on."""
        files = []
        for dataset in self.datasets:
            files += [dataset.manifest, dataset.samples]
            if isinstance(dataset.generator_manifest, str):
                files += [dataset.generated_images, dataset.generator_manifest]
        files += self.fetched_manifests()
        for model in self.task_models:
            if isinstance(model.weights, str):
                files += [model.weights, model.manifest]
            if model.offsets:
                files.append(model.offsets.file)
        files += self.logit_files()
        files += [f"results/scores/{self.name}.parquet", f"results/sweeps/{self.name}.parquet"]
        return [*files, f"{self.folder}/models.json"]

    def sample_results(self) -> list[str]:
        """Values per sample, and all files that they depend on."""
        files = self.logit_results() + self.sample_files(self.measures.values())
        for remedy_files in self.remedy_files().values():
            files += remedy_files
        for path in (self.attributes_table(), self.release_values()):
            if isinstance(path, str):
                files.append(path)
        return files

    def projection_results(self) -> list[str]:
        """Projections, their mappers, and what the other tasks are compared by."""
        files = []
        for mapper in self.mappers:
            files += [mapper.weights, mapper.manifest, mapper.pictures]
        files += self.projection_files()
        for task_files in self.task_files().values():
            files += task_files
        return files

    def model_results(self) -> list[str]:
        """All files per model that the audit depends on."""
        return self.sample_results() + self.projection_results()

    def verdict_results(self) -> list[str]:
        """Verdict, and every file that it rests on: of all measures, since it says what attacks say."""
        tables = [f"{self.folder}/{name}.parquet" for name in TABLES_OF_AUDIT]
        return [f"{self.folder}/verdict.json", *tables, *self.model_results()]

    def report_results(self) -> list[str]:
        """Report, and every file that it rests on."""
        return self.audit_results() + self.model_results()

    # ---- exports ----

    def export_results(self) -> list[str]:
        """Folders of the exports."""
        return [f"{self.folder}/exports/{name}" for name in EXPORTS]

    def deposited_inputs(self) -> list[str]:
        """Manifests of datasets and classifiers, which contain their digests; none of models brought as values."""
        manifests = [dataset.manifest for dataset in self.datasets]
        for model in self.models:
            if model.network.source.fitted or model.network.source.fetched:
                manifests.append(model.manifest)
        return manifests

    def deposited_results(self) -> list[str]:
        """Results of the audit without the verdict."""
        files = self.audit_results()
        files.remove(f"{self.folder}/verdict.json")
        return files

    # ---- params of the steps, as plain values ----

    def measure_entries(self) -> Params:
        """Settings of the measures by name."""
        return entries_of(self.measures)

    def subject(self) -> Params:
        """Models, measures, calibrated measure and files of logits.

        `given` maps the labels of models that are brought as values to their source, "logits" or "samples".
        """
        calibration = self.settings.calibration
        supplied = {}
        logits = {}
        for model in self.models:
            if model.source.name in SOURCES_OF_VALUES:
                supplied[model.label] = model.source.name
            if model.has_logits:
                logits[model.label] = model.logits
        return {
            "models": [model.name.columns() for model in self.models],
            "measures": self.measure_entries(),
            "calibrated_measure": calibration.measure if calibration else None,
            "given": supplied,
            "logits": logits,
        }

    def judged_subject(self) -> Params:
        """Subject with the judged measures alone."""
        subject = self.subject()
        subject["measures"] = entries_of(by_name(self.judged_measures()))
        return subject

    def release_params(self) -> Params:
        """Parameters of the comparison with the last release: models, measures, its bundle and the model in it.

        `state` is the digest of the bundle's statement, which names every file of it.
        """
        release = self.settings.last_release
        if release is None:
            return {}
        return {
            "models": [model.name.columns() for model in self.models],
            "measures": entries_of(self.release_measures()),
            "bundle": release.bundle,
            "model": release.model,
            "state": digest(self.release_statement),
        }

    def logit_checks(self) -> list[PlainSettings]:
        """Settings of the check of the logits, for each model that has logits."""
        samples = self.dataset.settings.published_accuracy
        on_failure = self.run.settings.checks.published_accuracy
        checks = []
        for model in self.models:
            if model.has_logits:
                checks.append(model.logit_check(samples=samples, on_failure=on_failure))
        return checks

    def user_logit_digests(self) -> dict[str, str | None]:
        """SHA-256 (hex) of the logit files of the user, by path; None for a missing one."""
        digests = {}
        for model in self.models:
            if model.source.name == "logits":
                digests[model.logits] = digest(model.logits)
        return digests

    def described_models(self) -> list[TrainedModel]:
        """Models with their training method and architecture, as far as the workflow trains them."""
        return [model.description() for model in self.models]

    def training_baselines(self) -> dict[str, str]:
        """Models against which others' trainings are judged, by theirs; none where several would do."""
        baselines = {}
        trained = [model for model in self.models if model.source.name == "trained"]
        for model in trained:
            candidates = []
            for other in trained:
                if other.is_baseline_of(model):
                    candidates.append(other.label)
            if len(candidates) == 1:
                baselines[model.label] = candidates[0]
        return baselines

    def table_settings(self) -> TableSettings:
        """Settings of the tables."""
        settings = self.run.settings
        baseline = self.settings.corruption_baseline
        tasks = []
        for task in self.tasks:
            models = [model.name.columns() for model in self.models_on(task)]
            groups = self._groups_of(task)
            tasks.append(TaskSettings(models=models, label_attribute=task.label_attribute, groups=groups))
        return TableSettings(
            intervals=settings.intervals,
            disparity=settings.disparity,
            comparison=settings.comparison,
            confusions=settings.confusions,
            calibration=self._temperature_search(),
            corruption_baseline=baseline and baseline.partition("/")[2],
            groups=self._groups_of(self.dataset),
            tasks=tasks,
            label_error_rate=self.dataset.settings.label_error_rate,
            published=[model.published for model in self.models],
            methods=self.described_models(),
            baselines=self.training_baselines(),
            costs=self.job_records(),
            remedies=[remedy.parameters() for remedy in self.remedies],
            gate=[rule.model_dump(by_alias=True) for rule in self.rules] if self.remedies else [],
        )

    def _temperature_search(self) -> TemperatureSearch | None:
        calibration = self.settings.calibration
        if calibration is None:
            return None
        great = self.run.settings.great
        return TemperatureSearch(
            temperatures=great.temperatures,
            stability_window=great.stability_window,
            permutations=great.permutations,
            objectives=list(calibration.objectives or ()),
            split=calibration.split,
            distances=self.calibrating_distances,
        )

    def _groups_of(self, task: PlannedDataset) -> GroupSettings | None:
        groups = self.settings.groups
        if groups is None:
            return None
        return groups.model_copy(update={"positive": self.positive_class(task)})

    def job_records(self) -> list[JobRecord]:
        """Every job of the audit that is about one model, and the file with its cost, in order."""
        records = []
        for model in self.task_models:
            records += self._records_of_model(model)
        for remedy in self.remedies:
            records += _records_of_remedy(remedy)
        return records

    def _records_of_model(self, model: PlannedModel) -> list[JobRecord]:
        records = []
        if model.network.source.fitted:
            records.append(_job_record("train_model", model, f"train_model/{model.network.zoo_path}"))
        if model.offsets:
            records.append(_job_record("choose_offsets", model, f"choose_offsets/{model.offsets.stem}"))
        if model.source.name not in SOURCES_OF_VALUES:
            records.append(_job_record("extract_logits", model, f"extract_logits/{model.name.path}"))
        measures = self.measures.values() if model.name.dataset == self.dataset.name else ()
        for measure in measures:
            if not measure.derived:
                step = "import_samples" if model.source.name == "samples" else step_of(measure)
                path = f"{step}/{measure.name}/{model.name.path}"
                records.append(_job_record(step, model, path, measure=measure.name))
        for mapper in self.mappers:
            path = f"project_attributes/{mapper.name}/{model.name.path}"
            records.append(_job_record("project_attributes", model, path))
        return records


def _records_of_remedy(remedy: PlannedRemedy) -> list[JobRecord]:
    name, offsets = remedy.measure.name, remedy.planned_offsets
    choosing = f"choose_offsets/{offsets.stem}"
    records = [_job_record("choose_offsets", offsets.model, choosing, measure=name)]
    for model in (remedy.original, remedy.judged):
        records.append(_job_record("extract_logits", model, f"extract_logits/{model.name.path}"))
    for model in remedy.models:
        path = f"measure_model/{name}/{model.name.path}"
        records.append(_job_record("measure_model", model, path, measure=name))
    return records


def _job_record(step: str, model: PlannedModel, path: str, measure: str | None = None) -> JobRecord:
    # The file has the path of the job's log.
    return JobRecord(step=step, **model.name.columns(), measure=measure, path=f"results/costs/{path}.json")
