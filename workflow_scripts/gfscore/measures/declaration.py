"""What a kind of measure declares: its settings, what a value means, and what computing it takes.

Imports nothing heavy: declarations are read whenever a run is planned.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from pydantic import Field

from gfscore.core.settings import Entry, Seed, Subset, never
from gfscore.statistics.error_rates import error_rate

CopiesAtOnce = Annotated[int, Field(ge=1, le=1_000_000, description="Disturbed copies classified at a time.")]


class Settings(Entry):
    """Settings of a measure; each kind adds its own, among them `kind`, a literal."""


class NetworkSettings(Settings):
    """Settings that every measure has which shows images to a network."""

    last = ("subset", "seed")

    subset: Annotated[Subset | None, Field(description="Part of the samples to use; null for all.")] = None
    seed: Seed = 0


class Column(NamedTuple):
    """Column of a samples table: its name, its Arrow type by name ("float64") and its meaning."""

    name: str
    type: str
    meaning: str


CLEAN_PREDICTION = Column("clean_prediction", "int32", "predicted class of the undisturbed sample; null where unknown")


class Mistake(NamedTuple):
    """What is wrong with settings: the path of the key, and a sentence with the value and the remedy."""

    key: tuple[str, ...]
    words: str

    def __str__(self) -> str:
        """In one line, "smoothing: sandwich: ..."."""
        return ": ".join([*self.key, self.words])


@dataclass(frozen=True)
class Measure:
    """What every consumer of a measure needs to know of it. Every measure is oriented so that higher is better.

    Parameters
    ----------
    title : str
        For axes and tables.
    value_range : tuple of float
        Lowest and highest value of a sample; intervals rely on it.
    unit : str
        For axes.
    explanation : str
        What a value means, in full sentences.
    binary : bool
        Whether a value is one end of the range or the other, nothing between.
    test : mapping, optional
        Settings of the test or certification behind each value; None without one.
    several_copies : bool
        Whether the samples table holds several disturbed copies of each sample, whose mean is the sample's value.
    undecided : bool
        Whether a censored value may be any up to the upper end of the range.
    """

    title: str
    value_range: tuple[float, float]
    unit: str
    explanation: str
    binary: bool = False
    test: Mapping[str, Any] | None = None
    several_copies: bool = False
    undecided: bool = False

    direction: ClassVar[int] = 1

    @property
    def error_rate(self) -> float:
        """Largest probability that a sample's value is wrong because the test behind it errs, 0 without a test.

        Computed at every access. Raises InputError where it is not below 0.5.
        """
        if self.test is None:
            return 0.0
        return error_rate(self.test)


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[S]):
    """A kind of measure: all that planning, computing, tables and pages need to know of it."""

    name: str
    """Value of `kind` in the configuration, and name of the file that declares it."""
    settings: type[S]
    """Its settings, a closed pydantic model with defaults."""
    describe: Callable[[S], Measure]
    """The Measure that settings describe."""
    needs: Literal["logits", "network"]
    """What it is computed from: the logits of a model, or a network that images are shown to."""
    function: str
    """What computes it, "module:name", and returns columns of its samples table.

    From logits it is called as function(logits, labels, settings=...), with all N samples; of a network as
    function(classifier, images, labels, settings=..., seeds=...), batch by batch (see
    gfscore.measures.job.measure_in_batches). `settings` is an object of its class.
    """
    value: str
    """What the value of a sample is, for the documentation."""
    passes: str
    """How many passes of a sample through the network it takes, for the documentation."""
    named_by: tuple[str, ...] = ()
    """Settings of which the name of an unnamed measure is made, such as "smoothing.sigma" (gfscore.measures.names)."""
    columns: tuple[Column, ...] = ()
    """Columns of its samples table, without those of every measure and of every measure of a network."""
    table_version: int = 1
    """Raised when the meaning of a column changes."""
    version: int = 1
    """Raised when values change: those of a network are not computed again because of an edit of the code."""
    random_draws: bool = False
    """Whether values depend on random draws, which the seed of each sample decides."""
    gradients: Callable[[S], bool] = never
    """Whether the network is differentiated."""
    attacks: bool = False
    """Whether an adversary looks for what the classifier gets wrong."""
    fast_search: bool = False
    """Whether its attacks search in the arithmetic of the setting `inference: search`, `classifier.search`."""
    attack_modules: Callable[[S], tuple[str, ...]] = lambda settings: ()
    """Modules that declare the attacks of its settings."""
    predicts: bool = False
    """Whether its predictions are the classifier's answers to the images shown, so that confusions are counted."""
    copies: bool = False
    """Whether its function takes `copies`, the corrupted copies of a dataset that brings them."""
    elsewhere: Callable[[S], bool] | None = None
    """Whether the values were computed elsewhere; None for a kind whose settings do not say so."""
    imported: str = ""
    """What makes columns of imported certified predictions and radii, "module:name"; empty for no import."""
    hint: str = ""
    """What to do where a model does not give what is needed."""
    find_mistakes: Callable[..., Iterator[Mistake]] = lambda settings, **_: iter(())
    """find_mistakes(settings, classes=..., thorough=...): what settings can be wrong in beyond their types."""
    forward_passes: Callable[[S, int], float] = lambda settings, classes: 1
    """Forward passes of a sample that it makes at most, a gradient counted as two more, of a network of K classes.

    A GPU is used where they save more time than it takes to start (gfscore.networks.device_choice).
    """
    copies_at_once: Callable[[S], int] = lambda settings: 1
    """Disturbed copies that are classified at a time; 1 for a kind that shows the batch of images as it is."""
    mem_mb: int = 4000
    """Memory of a job for one (model, dataset), in megabytes."""
    runtime: int = 480
    """Minutes of a job."""
    gpu: int = 1
    """GPUs of a job."""

    @property
    def module(self) -> str:
        """Module that declares it."""
        return f"gfscore.measures.{self.name}"

    @property
    def kind_columns(self) -> tuple[Column, ...]:
        """Columns of its samples table, without those of every measure."""
        if self.needs == "logits":
            return self.columns
        return (CLEAN_PREDICTION, *self.columns)

    def version_with(self, search: str) -> str:
        """Version, with the setting `inference: search` where the attacks of the kind follow it.

        "auto" is left out: where a job runs is no reason to measure again.
        """
        if search == "auto" or not self.fast_search:
            return str(self.version)
        return f"{self.version}, search in {search}"

    def parse(self, entry: Mapping[str, Any]) -> S:
        """Settings of an entry of the configuration, with its defaults; raises pydantic's ValidationError."""
        return self.settings.model_validate(dict(entry))

    def mistakes(self, settings: S, *, classes: float | None = None, thorough: bool = False) -> Iterator[Mistake]:
        """Yield what is wrong with settings that the schema accepts.

        Parameters
        ----------
        settings : Settings
            Parsed settings.
        classes : float, optional
            Number of classes of the data that they are for; None where unknown.
        thorough : bool
            Whether to look for what takes a second to find, too.
        """
        number = float("inf") if classes is None else classes
        return self.find_mistakes(settings, classes=number, thorough=thorough)

    def load(self) -> Callable[..., dict[str, Any]]:
        """Import the function that computes it, which takes parsed settings.

        That of a network raises InputError where a pass gave NaN or infinity (see gfscore.networks.passes).
        """
        function = resolve_name(self.function)
        if self.needs == "logits":
            return function
        # The watch is of networks, which measures from logits run without.
        from gfscore.networks.passes import refusing_nan

        return refusing_nan(function)

    def load_imported(self) -> Callable[..., dict[str, Any]]:
        """Import the function that makes its columns from certified radii."""
        return resolve_name(self.imported)
