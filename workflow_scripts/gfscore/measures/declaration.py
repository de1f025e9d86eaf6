"""What a kind of measure declares: its settings, the meaning of its values, and how they are computed.

Imports nothing heavy: declarations are read whenever a run is planned.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Entry, PlainSettings, Seed, Subset, never
from gfscore.statistics.error_rates import SequentialTest

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier

CopiesAtOnce = Annotated[int, Field(ge=1, le=1_000_000, description="Disturbed copies classified at a time.")]


class Settings(Entry):
    """Settings of a measure. Each kind adds its own, and makes `kind` a literal with its name."""

    kind: str


class NetworkSettings(Settings):
    """Settings of a measure that shows images to a network."""

    last = ("subset", "seed")

    subset: Annotated[Subset | None, Field(description="Part of the samples to use; null for all.")] = None
    seed: Seed = 0


class Column(NamedTuple):
    """Column of a samples table: its name, the name of its Arrow type ("float64") and its meaning."""

    name: str
    type: str
    meaning: str


CLEAN_PREDICTION = Column("clean_prediction", "int32", "predicted class of the undisturbed sample; null where unknown")


class Mistake(NamedTuple):
    """A mistake in settings: the path of the wrong key, and a sentence with the value and the remedy."""

    key: tuple[str, ...]
    words: str

    def __str__(self) -> str:
        """One line, such as "smoothing: sandwich: ..."."""
        return ": ".join([*self.key, self.words])


@dataclass(frozen=True)
class Measure:
    """Meaning of the values of a measure, for tables, intervals and pages. Higher values are always better.

    Parameters
    ----------
    title : str
        For axes and tables.
    value_range : tuple of float
        Lowest and highest possible value of a sample; confidence intervals are valid only if it holds.
    unit : str
        For axes.
    explanation : str
        What a value means, in full sentences.
    binary : bool
        Whether a value can only be one of the two ends of the range.
    alpha : float
        Largest probability that the certificate behind a sample's value is wrong; 0 without one.
    test : SequentialTest, optional
        Test that decides each value; None without one.
    several_copies : bool
        Whether the samples table holds several disturbed copies of each sample, whose mean is the sample's value.
    undecided : bool
        Whether a censored value is a lower bound: the true one may lie anywhere between it and the end of the range.
    """

    title: str
    value_range: tuple[float, float]
    unit: str
    explanation: str
    binary: bool = False
    alpha: float = 0.0
    test: SequentialTest | None = None
    several_copies: bool = False
    undecided: bool = False

    @property
    def error_rate(self) -> float:
        """Largest probability that the test or certificate behind a sample's value is wrong; 0 without one.

        Computed at every access. Raises InputError for a probability of 0.5 or more.
        """
        if self.test is None:
            return self.alpha
        return self.test.error_rate()


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[S]):
    """A kind of measure: all that planning, computing, tables and pages need to know of it."""

    name: str
    """Value of `kind` in the configuration, and name of the file that declares it."""
    settings: type[S]
    """Class of its settings, a pydantic model that refuses unknown keys."""
    describe: Callable[[S], Measure]
    """describe(settings): meaning of the values that are measured with these settings."""
    needs: Literal["logits", "network", "measures"]
    """Whether it is computed from the logits of a model, by showing images to its network, or from other measures."""
    function: str
    """Function that computes it, "module:name", and returns columns of its samples table.

    A measure from logits is called once for all N samples, function(logits, labels, settings=...); one of a network
    batch by batch, function(classifier, images, labels, settings=..., seeds=...): see
    gfscore.measures.job.measure_in_batches. `settings` is an object of the class above. One from other measures is
    called once for all samples, function(tables, settings=..., sources=...), with the samples tables of its members.
    """
    value: str
    """What the value of a sample is, for the documentation."""
    passes: str
    """How often a sample passes through the network, for the documentation."""
    members: Callable[[S, Mapping[str, Any]], list[str]] = lambda settings, measures: []
    """members(settings, measures): names of the measures of an audit that it is made of.

    Raises InputError, with the remedy, where it cannot be made of them.
    """
    entries_for: Callable[[Mapping[str, Any]], Iterator[dict[str, Any]]] = lambda measures: iter(())
    """entries_for(measures): entries of this kind that are added to an audit with these measures."""
    named_by: tuple[str, ...] = ()
    """Settings that make the name of a measure without one, such as "smoothing.sigma" (gfscore.measures.names)."""
    columns: tuple[Column, ...] = ()
    """Columns of its samples table beyond those that all measures have, or all measures of a network."""
    evidence: tuple[Column, ...] = ()
    """Columns of bytes from which others check values again: certificates, counterexamples. A table may lack them."""
    table_version: int = 1
    """Increase it when the meaning of a column changes."""
    version: int = 1
    """Increase it when an edit of the code changes values; without that, measures of a network are not run again."""
    random_draws: bool = False
    """Whether values depend on random draws, which the seed of each sample decides."""
    gradients: Callable[[S], bool] = never
    """gradients(settings): whether it needs gradients of the network."""
    gradients_alone: Callable[[S], bool] = never
    """gradients_alone(settings): whether nothing but gradients leads its search for images that are misclassified."""
    attacks: bool = False
    """Whether an adversary searches for images that the classifier gets wrong."""
    fast_search: bool = False
    """Whether its attacks search in the arithmetic of the setting `inference: search`, `classifier.search`."""
    attack_modules: Callable[[S], tuple[str, ...]] = lambda settings: ()
    """attack_modules(settings): modules that declare the attacks in them."""
    predicts: bool = False
    """Whether its predictions are the classifier's answers to the images shown; these count in tables of confusions."""
    copies: bool = False
    """Whether its function takes `copies`, corrupted copies of the images that the dataset contains."""
    elsewhere: Callable[[S], bool] | None = None
    """elsewhere(settings): whether another program computed the values; None for a kind that imports none."""
    require: str = ""
    """Function that refuses a classifier before anything is measured, "module:name": require(classifier, image_shape)
    raises InputError with the remedy. Empty for a kind that takes every classifier."""
    imported: str = ""
    """Function that makes columns from imported certified predictions and radii, "module:name"; empty for no import."""
    hint: str = ""
    """Remedy for a model that does not give what the kind is computed from."""
    find_mistakes: Callable[..., Iterator[Mistake]] = lambda settings, **_: iter(())
    """find_mistakes(settings, classes=..., thorough=...): mistakes in settings whose types are right."""
    forward_passes: Callable[[S, int], float] = lambda settings, classes: 1
    """forward_passes(settings, K): most forward passes of a sample, each gradient counted as two more.

    A GPU is used where it saves more time on them than it takes to start (gfscore.networks.device_choice).
    """
    images_at_once: Callable[[S, int, int], int] = lambda settings, batch_size, classes: batch_size
    """images_at_once(settings, batch_size, K): most images in one pass, of batches of so many samples."""
    most_at_once: int = 1_000_000
    """Images of a batch at most, of a kind whose samples take seconds: a killed job keeps its finished batches."""
    most_cores: int = 1
    """Cores on which its function works on several samples at once; if more than 1, it takes their number as `cores`.

    No value may depend on it."""
    mem_mb: int = 4000
    """Memory of a job for one (model, dataset), in megabytes."""
    runtime: int = 480
    """Minutes of a job."""

    @property
    def module(self) -> str:
        """Module that declares it."""
        return f"gfscore.measures.{self.name}"

    @property
    def kind_columns(self) -> tuple[Column, ...]:
        """Columns of its samples table beyond those that all measures have."""
        if self.needs == "network":
            return (CLEAN_PREDICTION, *self.columns)
        return self.columns

    def version_with(self, search: str) -> str:
        """Version, followed by the setting `inference: search` where it may change what attacks find.

        "auto" adds nothing: it depends on the machine, and another machine is no reason to measure again.
        """
        if search == "auto" or not self.fast_search:
            return str(self.version)
        return f"{self.version}, search in {search}"

    def parse(self, entry: PlainSettings) -> S:
        """Settings of an entry of the configuration, with its defaults; raises pydantic's ValidationError."""
        return self.settings.model_validate(dict(entry))

    def mistakes(self, settings: S, *, classes: float = math.inf, thorough: bool = False) -> Iterator[Mistake]:
        """Yield the mistakes in settings that the schema accepts.

        Parameters
        ----------
        settings : Settings
            Parsed settings.
        classes : float
            Number of classes of the data; infinite where it is unknown.
        thorough : bool
            Whether to make the checks that take a second, too.
        """
        return self.find_mistakes(settings, classes=classes, thorough=thorough)

    def load(self) -> Callable[..., dict[str, Any]]:
        """Import the function that computes it, which takes parsed settings.

        The function of a measure of a network raises InputError where a pass gave NaN or infinity (see
        gfscore.networks.passes).
        """
        function = resolve_name(self.function)
        if self.needs != "network":
            return function
        # Imported only now, since measures from logits run without networks.
        from gfscore.networks.passes import refusing_nan

        return refusing_nan(function)

    def require_suitable(self, classifier: "Classifier", image_shape: tuple[int, ...], *, where: Path | str) -> None:
        """Raise InputError for a classifier of the file `where` that the kind cannot measure, with a remedy."""
        if not self.require:
            return
        try:
            resolve_name(self.require)(classifier, image_shape)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error

    def load_imported(self) -> Callable[..., dict[str, Any]]:
        """Import the function that makes its columns from certified radii."""
        return resolve_name(self.imported)
