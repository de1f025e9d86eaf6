"""The plan of a run: its audits, what they are about, and the files that they rest on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from gfscore.audit.step_params import LogitChanges
from gfscore.audit.verdicts.gate_rules import DECLINE, FALSIFICATION, GROUP_GAP
from gfscore.core.identity import ModelName
from gfscore.core.mappings import only
from gfscore.core.settings import Half, PlainSettings
from gfscore.measures import NamedMeasure, named_measures, names_of_kind
from gfscore.measures.robust import PROVEN
from gfscore.networks import leaderboard
from gfscore.networks.sources import adjusted
from gfscore.workflow.audit_settings import AuditSettings, RunSettings
from gfscore.workflow.entries import (
    CHECKPOINTS,
    PlannedDataset,
    PlannedMapper,
    PlannedModel,
    PlannedOffsets,
    choice_name,
    model_entries,
    planned_datasets,
)
from gfscore.workflow.remedies import PlannedRemedy, adjusted_name, half_name
from gfscore.workflow.user_files import OptionalFile, present

NOTHING = "(?!)"
"""Regular expression that matches nothing."""


def one_of(names: Iterable[str]) -> str:
    """Regular expression that matches exactly these names; nothing if there are none."""
    return "|".join(map(re.escape, names)) or NOTHING


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
        assert zoo is not None  # only datasets with models are asked for one
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
        """An example of each choice of offsets (objective and attacks), by the name of the choice."""
        choices = {}
        for model in self._entries_from(adjusted.SOURCE.name):
            if model.offsets:
                choices[model.offsets.choice] = model.offsets
        return choices

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
    """One audit of a complete configuration: what it is about, and the files that it rests on.

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
        return [self.dataset, *(self.run.datasets[name] for name in self.settings.tasks)]

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

    @cached_property
    def mappers(self) -> list[PlannedMapper]:
        """Mappers whose latent dimensions predictions are held against."""
        return [self.run.mappers[name] for name in self.settings.mappers]

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
    def every_model(self) -> list[PlannedModel]:
        """Models of all tasks and remedies, and those that offsets are added to."""
        models = list(self.task_models)
        for remedy in self.remedies:
            models += remedy.models
        for model in list(models):
            if model.offsets:
                models.append(model.offsets.model)
        return models

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
    def judged_measures(self) -> dict[str, NamedMeasure]:
        """Measures that the gate reads: those of its rules, members of derived ones, and distances that falsify scores.

        If none of these is computed from logits, a measure from logits is added, to check that one network gave all
        values.
        """
        names = set()
        for rule in self.settings.gate:
            names.add(rule.measure)
            names.update(member.name for member in self.measures[rule.measure].members(self.measures))
            if rule.statistic == FALSIFICATION:
                names.update(self.distance_measures)
        from_logits = [name for name, measure in self.measures.items() if measure.from_logits]
        if names and names.isdisjoint(from_logits):
            names.update(from_logits[:1])
        return {name: measure for name, measure in self.measures.items() if name in names}

    @property
    def release_measures(self) -> dict[str, NamedMeasure]:
        """Measures in which classes must not decline since the last release, by name."""
        names = [rule.measure for rule in self.settings.gate if rule.statistic == DECLINE]
        return only(self.measures, names)

    def release_values(self) -> OptionalFile:
        """Values per sample of the last release; empty where no rule compares with them."""
        return f"results/releases/{self.name}.parquet" if self.release_measures else []

    def positive_class(self, task: PlannedDataset) -> str | None:
        """Positive class of one of the tasks; None for each class against the others."""
        groups = self.settings.groups
        positive = groups.positive if groups else None
        if isinstance(positive, Mapping):
            return positive.get(task.name)
        return positive if task is self.dataset else None

    # ---- files that several steps read ----

    def logit_files(self) -> list[str]:
        """Paths of the models' logits, without missing files of the user."""
        files = []
        for model in self.models:
            if model.has_logits and present(model.logits):
                files.append(model.logits)
        return files

    def sample_files(self, measures: Mapping[str, NamedMeasure]) -> list[str]:
        """Paths of the samples tables of these measures, model by model.

        Measures from logits have none where a model has logits: their values are in results/scores. Derived measures
        have none: their values are made of the others'.
        """
        stored = [measure for measure in measures.values() if not measure.derived]
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
        judged = any(rule.statistic == GROUP_GAP for rule in self.settings.gate)
        return self.attributes_table() if judged else []

    def projection_files(self) -> list[str]:
        """Paths of the projections by mapper, then task, then model, in the order of the configuration."""
        files = []
        for mapper in self.mappers:
            files += [mapper.projection(model) for model in self.task_models]
        return files

    def task_files(self) -> dict[str, list[str]]:
        """Input files of the tables for tasks beside the audit's own dataset, by the name of the input.

        `task_manifests` and `task_datasets`, one per task; `task_logits`, one per task and model; `task_attributes`,
        one per task of an audit that compares groups.
        """
        further_tasks = self.tasks[1:]
        compared = further_tasks if self.settings.groups else []
        return {
            "task_manifests": [task.manifest for task in further_tasks],
            "task_datasets": [task.samples for task in further_tasks],
            "task_attributes": [task.attributes_table for task in compared],
            "task_logits": [model.logits for model in self.task_models if model.name.dataset != self.dataset.name],
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
