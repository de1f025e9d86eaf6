"""Models, datasets and mappers of a run: their settings, and the files that steps read and write for each of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from gfscore.audit.step_params import TrainedModel
from gfscore.core.identity import ModelName
from gfscore.core.mappings import without
from gfscore.core.settings import PlainSettings
from gfscore.images.attribute_source import SOURCES as ATTRIBUTE_SOURCES
from gfscore.images.attribute_source import AttributeSettings, attribute_sources
from gfscore.images.attributes.columns import SOURCE as COLUMNS
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, dataset_sources
from gfscore.images.sources.generated import Generated
from gfscore.images.sources.generator_file import GeneratorFile, NetworkGenerator
from gfscore.measures import NamedMeasure
from gfscore.networks import leaderboard
from gfscore.networks.architecture_files import describe_network, folder, network_files
from gfscore.networks.device_choice import LARGE_NETWORK_THREADS, threads_for_size
from gfscore.networks.model_source import PUBLISHED, Gives, LogitsSettings, ModelSettings, ModelSource, model_sources
from gfscore.networks.offset_settings import OffsetSettings
from gfscore.networks.onnx_files import data_files
from gfscore.networks.sources.probe import Fit
from gfscore.networks.sources.trained import Trained
from gfscore.networks.sources.transformers import parts_of
from gfscore.networks.training_settings import training_methods
from gfscore.projection.mappers.declared import MapperKind, MapperSettings, mapper_kinds
from gfscore.workflow.user_files import FileState, OptionalFile, digest, present, size_of, state

CHECKPOINTS = "checkpoints"
"""Folder of downloaded checkpoints, beside config.yaml; may be a link to a larger disk."""

SOURCES_OF_VALUES = ("logits", "samples")
"""Sources of models that users bring as values, which cannot classify images."""

NOT_OF_IMAGES = (
    "classes", "models_of", "label_error_rate", "published_accuracy", "fitted_on", "generator", "path", "attributes",
    "digest",
)  # fmt: skip
"""Settings of a dataset that do not say how its images are read. Jobs get file, classes and digest separately."""

NOT_OF_DRAWS = ("half", "digest", "models_of", "label_error_rate", "published_accuracy", "attributes", "corrupted")
"""Settings of a dataset that do not determine what is drawn for it from a generator."""

NOT_OF_DATA = (*NOT_OF_DRAWS, "path", "classes", "subset", "preprocessing")
"""Settings of a dataset that, beside its path, do not determine which data its samples are taken from."""

SHARES_OF_DATA = ("split", "test_share", "seed", "part", "list")
"""Settings of a dataset that choose which of these data are its samples."""

ModelEntries = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Section `models` of the configuration: zoo, then threat model, then name to entry."""


def zoo_models(models: ModelEntries, zoo: str, threat: str) -> list[str]:
    """Names of a zoo's models for one threat model: entries, then those of RobustBench that need no entry."""
    names = list(models.get(zoo, {}).get(threat, {}))
    for listing in leaderboard.listings(zoo, threat):
        if listing.supported and listing.model not in names:
            names.append(listing.model)
    return names


def model_entries(models: ModelEntries) -> Iterator[tuple[str, str, str, Any]]:
    """Zoo, threat model, name and entry of each model of the configuration."""
    for zoo, threats in models.items():
        for threat, entries in threats.items():
            for name, entry in entries.items():
                yield zoo, threat, name, entry


@dataclass(frozen=True)
class PlannedModel:
    """A model of a zoo, and the files that define it.

    Parameters
    ----------
    name : ModelName
        With the dataset that the model is evaluated on, or with its zoo where no data are meant.
    zoo : str
        Key of the section `models` that the model belongs to.
    entry : mapping
        Complete settings as plain values, as params and the resolved configuration hold them.
    offsets : PlannedOffsets, optional
        Offsets that are added to the logits of another model; None for a model without.
    """

    name: ModelName
    zoo: str
    entry: PlainSettings
    offsets: PlannedOffsets | None = None

    @cached_property
    def source(self) -> ModelSource:
        """Declaration of the source of the model."""
        return model_sources()[self.entry["source"]]

    @cached_property
    def settings(self) -> ModelSettings:
        """Settings of the source's class."""
        return self.source.settings.model_validate(self.entry)

    @property
    def label(self) -> str:
        """Name within an audit, "threat/model"."""
        return self.name.label

    @property
    def zoo_path(self) -> str:
        """Name within the configuration, "zoo/threat/model", and end of the path of the files that define it."""
        return f"{self.zoo}/{self.name.threat}/{self.name.classifier}"

    @property
    def network(self) -> PlannedModel:
        """The model whose files define the network: that which offsets are added to, else this one."""
        return self.offsets.model if self.offsets else self

    @property
    def path(self) -> str | None:
        """File that the entry names, of RobustBench a folder; None for a model that the workflow trains."""
        return getattr(self.settings, "path", None)

    # ---- what the model provides ----

    @property
    def gives(self) -> Gives:
        """What the model provides: values per sample, logits of the samples, logits of any images, gradients too."""
        return self.source.given_by(self.entry)

    @property
    def has_logits(self) -> bool:
        """Whether the model has logits, not only values per sample."""
        return self.source.name != "samples"

    @property
    def classifies(self) -> bool:
        """Whether the model can classify images."""
        return self.gives in ("gradients", "predictions")

    @property
    def training_datasets(self) -> list[str]:
        """Datasets that the workflow fits and evaluates the model on; empty for models that it does not fit."""
        settings = self.network.settings
        if not isinstance(settings, Fit | Trained):
            return []
        assert settings.evaluate_on is not None  # the resolver fills in the default
        return [settings.train_on, settings.evaluate_on]

    @property
    def is_downloaded(self) -> bool:
        """Whether the workflow downloads files of the model that are missing."""
        return bool(getattr(self.settings, "url", None)) or self.source.name == "robustbench"

    @property
    def published(self) -> dict[str, float | None]:
        """Published clean and robust accuracy by the names of their settings: fractions, None where none is."""
        return {
            "published_clean_accuracy": self.settings.published_clean_accuracy,
            "published_robust_accuracy": self.settings.published_robust_accuracy,
        }

    def is_baseline_of(self, model: PlannedModel) -> bool:
        """Whether `model` differs from this one only in its training method, which modifies this one's.

        Coefficients that both methods have are equal, such as beta of TRADES and of those that modify it.
        """
        if not (isinstance(self.settings, Trained) and isinstance(model.settings, Trained)):
            return False
        baseline = training_methods()[model.settings.training.method].baseline
        if self.settings.training.method != baseline or self.settings.train_on != model.settings.train_on:
            return False
        training = self.settings.training.model_dump(exclude={"method"})
        training_of_model = model.settings.training.model_dump(exclude={"method"})
        coefficients = training.pop("coefficients")
        coefficients_of_model = training_of_model.pop("coefficients")
        for name in coefficients.keys() & coefficients_of_model.keys():
            if coefficients[name] != coefficients_of_model[name]:
                return False
        return training == training_of_model

    def description(self) -> TrainedModel:
        """The model and how the workflow trained it."""
        training = self.settings.training if isinstance(self.settings, Trained) else None
        return TrainedModel(
            **self.name.columns(),
            method=training.method if training else None,
            architecture=training.architecture if training else None,
        )

    # ---- files in results/ ----

    @property
    def logits(self) -> str:
        """Path of the logits: in results/, or the file that the entry names."""
        if self.source.name == "logits":
            return str(self.path)
        return f"results/logits/{self.name.path}.parquet"

    @property
    def fetched_manifest(self) -> str:
        """Manifest of a classifier or backbone that is downloaded or that the user provides."""
        return f"results/checkpoints/{self.network.zoo_path}.json"

    @property
    def manifest(self) -> str:
        """Manifest of the classifier, one for all datasets of its zoo."""
        if self.network.source.fitted:
            return f"results/trained/{self.network.zoo_path}.json"
        return self.fetched_manifest

    @property
    def weights(self) -> OptionalFile:
        """Weights that the workflow fits (safetensors); empty for others, whose manifest names their files."""
        if self.network.source.fitted:
            return f"results/trained/{self.network.zoo_path}.safetensors"
        return []

    def samples(self, measure: str) -> str:
        """Path of the samples table of a measure."""
        return f"results/samples/{measure}/{self.name.path}.parquet"

    def training_files(self) -> dict[str, OptionalFile]:
        """Inputs, by name, of the step that fits the model; `backbone` is empty where all weights are trained."""
        train, test = self.training_datasets
        return {
            "train": f"results/datasets/{train}.json",
            "test": f"results/datasets/{test}.json",
            "backbone": self.fetched_manifest if self.source.fetched else [],
        }

    # ---- files of the user ----

    def checkpoint_settings(self) -> PlainSettings:
        """Settings that determine a fetched classifier: its entry without published figures."""
        return without(self.entry, PUBLISHED)

    def weight_files(self) -> list[Path]:
        """Further files of weights, which the file of the entry names: data of ONNX, parts of transformers."""
        if self.path and self.source.name == "onnx":
            return data_files(self.path)
        if self.path and self.source.name == "transformers":
            return parts_of(self.path)
        return []

    def placed_files(self) -> list[str]:
        """Files of an entry without url, as inputs, so that their replacement is noticed; empty for other entries.

        The files of `weight_files` are among them. Missing files are left out, which fetch_checkpoint reports.
        """
        if self.path is None or self.is_downloaded:
            return []
        return list(filter(present, [self.path, *map(str, self.weight_files())]))

    @property
    def architecture(self) -> str | None:
        """Architecture of a network that the entry names; None for others."""
        return getattr(self.network.settings, "architecture", None)

    def architecture_files(self) -> list[Path]:
        """Files of the folder architectures/ that define the network, in order; empty for other networks."""
        return _code_of(self.architecture)[0]

    def checkpoint_state(self) -> object:
        """State of a user's checkpoint and digest of the code of its network; None without either."""
        states = [state(path) for path in self.placed_files()]
        # A single file has the older form, without a list, so that results of earlier versions stay up to date.
        files: object = states
        if len(states) < 2:
            files = states[0] if states else None

        code = _code_of(self.architecture)[1]
        return [files, code] if code else files

    def threads(self) -> int:
        """Number of threads: one where the model is trained on a CPU, else by the size of its checkpoint."""
        settings = self.network.settings
        if isinstance(settings, Trained) and settings.training.device == "cpu":
            return 1
        size = size_of(self.network.path)
        if size is None:
            return LARGE_NETWORK_THREADS
        return threads_for_size(size + sum(size_of(str(file)) or 0 for file in self.network.weight_files()))

    def logit_check(self, *, samples: str | None, on_failure: str) -> PlainSettings:
        """Settings of the check of the model's logits, as params.

        Parameters
        ----------
        samples : str or None
            Samples that published accuracies refer to, the setting `published_accuracy` of the dataset.
        on_failure : str
            Action where the measured clean accuracy is another than the published one, "stop" or "exclude".
        """
        settings = self.settings
        assert isinstance(settings, LogitsSettings)
        return {
            "model": self.name.columns(),
            "gate": {
                "published": settings.published_clean_accuracy,
                "tolerance": settings.clean_accuracy_tolerance,
                "samples": samples,
                "on_failure": on_failure,
            },
            "member": getattr(settings, "member", None),
            "allow_probabilities": self.entry.get("allow_probabilities", False),
        }


def choice_name(settings: OffsetSettings, measure: PlainSettings) -> str:
    """Name of a choice of offsets: its objective, and eight characters of the digest of settings and measure."""
    made_by = [settings.model_dump(), measure]
    digest = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()
    return f"{settings.objective}-{digest[:8]}"


@dataclass(frozen=True)
class PlannedOffsets:
    """Class offsets of a model: how they are chosen, and their file.

    Parameters
    ----------
    model : PlannedModel
        The model without offsets, on the dataset that they are chosen on.
    settings : OffsetSettings
        Objective, rounds and seed.
    measure : NamedMeasure
        Measure whose attacks they are chosen under.
    """

    model: PlannedModel
    settings: OffsetSettings
    measure: NamedMeasure

    @property
    def choice(self) -> str:
        """Name of the choice."""
        return choice_name(self.settings, self.measure.entry())

    @property
    def stem(self) -> str:
        """Path below the folders of offsets and of job records, without suffix."""
        return f"{self.model.name.path}/{self.choice}"

    @property
    def file(self) -> str:
        """Path of the offsets."""
        return f"results/offsets/{self.stem}.json"


@dataclass(frozen=True)
class PlannedDataset:
    """A dataset of the configuration, and the files of its images, samples and attributes.

    Parameters
    ----------
    name : str
        Key of the section `datasets`.
    entry : mapping
        Complete settings as plain values, as params and the resolved configuration hold them.
    whole : str
        Dataset whose samples are drawn for both halves, of which this is one; empty for others.
    """

    name: str
    entry: PlainSettings
    whole: str = ""

    @cached_property
    def source(self) -> DatasetSource:
        """Declaration of the source of the images."""
        return dataset_sources()[self.entry["source"]]

    @cached_property
    def settings(self) -> DatasetSettings:
        """Settings of the source's class."""
        return self.source.settings.model_validate(self.entry)

    @cached_property
    def attributes(self) -> AttributeSettings | None:
        """Settings of the attributes of the samples; None for a dataset without."""
        entry = self.entry["attributes"]
        if entry is None:
            return None
        return attribute_sources()[entry["source"]].settings.model_validate(entry)

    @property
    def attribute_names(self) -> list[str]:
        """Names of the attributes that the entry lists; empty without attributes, and where all columns are read."""
        return [] if self.attributes is None else self.attributes.names

    @property
    def zoo(self) -> str | None:
        """Zoo whose models are evaluated on the dataset; None for data that are only trained on."""
        return self.settings.models_of

    @property
    def label_attribute(self) -> str | None:
        """Attribute that serves as label; None where labels are no attribute."""
        return self.entry.get("task", self.entry.get("label"))

    # ---- files in results/ ----

    @property
    def manifest(self) -> str:
        """Manifest: digest, samples per class, shape of the images."""
        return f"results/datasets/{self.name}.json"

    @property
    def samples(self) -> str:
        """Table of the samples: names and labels."""
        return f"results/datasets/{self.name}.parquet"

    @property
    def attributes_table(self) -> str:
        """Table of the samples' attributes."""
        return f"results/attributes/{self.name}.parquet"

    @property
    def generated_images(self) -> str:
        """Images that the workflow draws from a generator (.npz)."""
        return f"results/generated/{self.whole or self.name}.npz"

    @property
    def generator_manifest(self) -> OptionalFile:
        """Manifest of the generator of the samples, with its digest or label error rates; empty without one."""
        return f"results/generated/{self.whole or self.name}.json" if self.source.drawn else []

    # ---- images and attributes ----

    def image_settings(self) -> PlainSettings:
        """Settings that say how the images are read: the source and the keys of that source, but for the file."""
        return without(self.entry, NOT_OF_IMAGES)

    def may_hold_samples_of(self, other: PlannedDataset) -> bool:
        """Whether this dataset may hold samples of another one.

        They may wherever both take samples from the same data, unless they are two parts of one split, have different
        lists, or the other is the choosing half and this one the judging half of the same samples.
        """
        # One file or folder may be named in several ways.
        if Path(self.path or "").absolute() != Path(other.path or "").absolute():
            return False
        other_settings = (*NOT_OF_DATA, *SHARES_OF_DATA)
        if without(self.entry, other_settings) != without(other.entry, other_settings):
            return False
        if without(self.entry, NOT_OF_DATA) != without(other.entry, NOT_OF_DATA):
            return not _apart(self.entry, other.entry)
        if (other.settings.half, self.settings.half) != ("choosing", "judging"):
            return True
        # Which samples a half holds depends on the subset and on the pixels that it is a half of.
        return any(self.entry.get(key) != other.entry.get(key) for key in ("subset", "preprocessing"))

    @property
    def path(self) -> str | None:
        """File or folder of the user that the entry names; None without one."""
        return getattr(self.settings, "path", None)

    @property
    def images(self) -> str | None:
        """File or folder of the images; None if they are part of a package."""
        return self.generated_images if self.source.drawn else self.path

    def stored_images(self) -> OptionalFile:
        """Images as the input of a step: the drawn file, else the user's; empty if it is missing.

        For a folder, whose modification time says little, the file that lists its images; empty without one.
        """
        if self.source.drawn:
            return self.generated_images
        return present(self.images) or present(getattr(self.settings, "list", None))

    @property
    def reference_dataset(self) -> str | None:
        """Name of the dataset that fixes the thresholds of the attributes; None without one."""
        return self.attributes.reference_dataset if self.attributes else None

    def attributes_reference(self) -> OptionalFile:
        """Manifest of the dataset that fixes the thresholds of the attributes; empty without one."""
        return f"results/datasets/{self.reference_dataset}.json" if self.reference_dataset else []

    def attributes_file(self) -> OptionalFile:
        """User's file of the attributes; empty if it is missing, or they are part of the dataset."""
        return present(getattr(self.attributes, "path", None))

    def attributes_state(self) -> FileState | list[FileState]:
        """State of the file of the attributes, or of each Parquet file that holds them beside the images."""
        if self.attributes is None or self.attributes.source != COLUMNS.name:
            return digest(self.attributes_file())
        # The digest of the dataset does not cover these columns.
        path = Path(self.path or "")
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".parquet")
        return [state(str(file)) for file in files]

    def attribute_modules(self) -> tuple[str, ...]:
        """Module of the source of the attributes; empty without attributes."""
        return (f"{ATTRIBUTE_SOURCES}.{self.attributes.source}",) if self.attributes else ()

    # ---- generators ----

    def generator_training(self) -> OptionalFile:
        """Manifest of the dataset that the workflow fits a generator of the samples on; empty for other datasets."""
        if not isinstance(self.settings, Generated):
            return []
        return f"results/datasets/{self.settings.fitted_on}.json"

    @property
    def generator(self) -> NetworkGenerator | None:
        """Settings of a user's generator of the samples; None for other datasets."""
        return self.settings.generator if isinstance(self.settings, GeneratorFile) else None

    def generator_files(self) -> list[str | Path]:
        """File of a user's generator, if it is there, and those of architectures/ that define its network."""
        if self.generator is None:
            return []
        files: list[str | Path] = []
        if present(self.generator.path):
            files.append(self.generator.path)
        return files + _code_of(self.generator.architecture)[0]

    def generator_state(self) -> list[FileState]:
        """State of a user's generator and digest of the code of its network, None without."""
        if self.generator is None:
            return []
        return [state(self.generator.path), _code_of(self.generator.architecture)[1]]


def planned_datasets(entries: Mapping[str, PlainSettings]) -> dict[str, PlannedDataset]:
    """Datasets of the configuration's section `datasets`, by name."""
    datasets = {}
    for name, entry in entries.items():
        datasets[name] = PlannedDataset(name, entry, _whole_of(entry, entries))
    return datasets


def _whole_of(entry: PlainSettings, entries: Mapping[str, PlainSettings]) -> str:
    # Samples of a generator are drawn once, not anew for each half.
    if "half" not in entry or not dataset_sources()[entry["source"]].drawn:
        return ""
    drawn_by = without(entry, NOT_OF_DRAWS)
    for name, candidate in entries.items():
        if "half" not in candidate and without(candidate, NOT_OF_DRAWS) == drawn_by:
            return name
    return ""


@dataclass(frozen=True)
class PlannedMapper:
    """A mapper of the configuration, and the files that its training reads and writes.

    Parameters
    ----------
    name : str
        Key of the section `mappers`.
    entry : mapping
        Complete settings as plain values, as params and the resolved configuration hold them.
    """

    name: str
    entry: PlainSettings

    @cached_property
    def kind(self) -> MapperKind:
        """Declaration of the kind of mapper."""
        return mapper_kinds()[self.entry["kind"]]

    @cached_property
    def settings(self) -> MapperSettings:
        """Settings of the kind's class."""
        return self.kind.settings.model_validate(self.entry)

    @property
    def weights(self) -> str:
        """Weights (safetensors)."""
        return f"results/mappers/{self.name}.safetensors"

    @property
    def manifest(self) -> str:
        """Manifest (JSON)."""
        return f"results/mappers/{self.name}.json"

    @property
    def pictures(self) -> str:
        """Pictures of moves along the latent dimensions (.npz)."""
        return f"results/mappers/{self.name}.npz"

    def projection(self, model: PlannedModel) -> str:
        """Table of the boundaries of a model along the latent dimensions."""
        return f"results/projections/{self.name}/{model.name.path}.parquet"

    def training_settings(self) -> PlainSettings:
        """Settings that determine the mapper: its entry without `search`, which affects projections only."""
        return without(self.entry, ["search"])

    def attributes_of(self, dataset: str) -> OptionalFile:
        """Table of a dataset's attributes, for a mapper with conditions; empty for other mappers."""
        return f"results/attributes/{dataset}.parquet" if self.kind.conditions else []

    def inputs(self) -> dict[str, OptionalFile]:
        """Inputs of the step that trains and evaluates the mapper, by name."""
        train, test = self.settings.train_on, self.settings.evaluate_on
        return {
            "train": f"results/datasets/{train}.json",
            "test": f"results/datasets/{test}.json",
            "train_attributes": self.attributes_of(train),
            "test_attributes": self.attributes_of(test),
        }


def serves(gives: Gives, measure: NamedMeasure) -> bool:
    """Whether a model that provides `gives` has what a measure needs.

    Parameters
    ----------
    gives : {"samples", "logits", "predictions", "gradients"}
        What the model provides; gradients include predictions, and predictions logits.
    measure : NamedMeasure
    """
    kind, settings = measure.kind, measure.settings
    if measure.derived:
        # Its members are checked instead.
        return True
    if kind.elsewhere and kind.elsewhere(settings) != (gives == "samples"):
        return False
    if gives == "samples":
        return bool(kind.imported)
    if kind.needs == "logits" or gives == "gradients":
        return True
    return gives == "predictions" and not kind.gradients(settings)


def _apart(first: PlainSettings, second: PlainSettings) -> bool:
    # Whether two entries of the same data choose different lists, or different parts of one split. Parts of two splits,
    # by other shares or seeds, have samples in common, and so have a part and the whole.
    lists = (first.get("list"), second.get("list"))
    if all(lists) and lists[0] != lists[1]:
        return True
    names = set()
    splits = []
    for entry in (first, second):
        part = entry.get("part") or entry
        names.add(part.get("name", part.get("split")))
        splits.append([part.get(key) for key in ("test_share", "within", "seed")])
    return len(names) == 2 and None not in names and splits[0] == splits[1]


def _code_of(architecture: str | None) -> tuple[list[Path], str | None]:
    return _code_in(architecture or "", folder())


@cache
def _code_in(architecture: str, architectures: Path) -> tuple[list[Path], str | None]:
    # Files and digest of a network's code. Cached, since every job that loads a classifier needs it; the folder is a
    # key, so that other folders are not mixed up.
    return network_files(architecture), describe_network(architecture).get("architecture_sha256")
