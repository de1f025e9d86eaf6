"""Settings of a rule of a gate. Imports nothing heavy."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gfscore.audit.verdicts.gate_rules import DIRECTIONS, FALSIFICATION, GROUP_GAP, ONE_CLASS
from gfscore.audit.verdicts.gate_statistics import REFUSED, STATISTICS, direction_of
from gfscore.core.errors import unknown
from gfscore.core.settings import Closed, Confidence, Count, Name, Number, Sparse, refusal


def _known(statistic: str) -> str:
    if statistic in REFUSED:
        raise refusal(REFUSED[statistic])
    if statistic not in STATISTICS:
        raise refusal(unknown("statistic", statistic, STATISTICS))
    return statistic


class Looks(Closed):
    """Looks at growing samples; each gets its share of 1 - confidence."""

    planned: Count = Field(1, description="How many times the gate will be asked in all, fixed before the first.")
    this: Count = Field(1, description="Which of them this is, from 1.")

    @model_validator(mode="after")
    def _this_was_planned(self) -> Self:
        if self.this > self.planned:
            raise refusal(f"this is {self.this}, but {self.planned} were planned; a further look needs fresh samples")
        return self


class RuleSettings(Sparse):
    """One rule of a gate: a statistic of a measure, and the threshold that every model must reach."""

    absent = frozenset({"class", "attribute", "at_least", "at_most"})

    measure: Name = Field(description="Measure that is judged, a score at T = 1.")
    statistic: Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": list(STATISTICS)})] = Field(
        "wcr",
        description="Number made of the class values: worst class (wcr), disparity (rdi, nrgc), fairness-penalised "
        "mean (fp), aggregate (value), mean over classes (class_mean), or one class. Or falsification_rate, of a "
        "measure of kind great: share of the correct samples whose score exceeds an attack distance found. Or "
        "group_gap: largest difference between the groups of an attribute.",
    )
    class_: str | None = Field(
        None,
        alias="class",
        description="Name of the class that the statistic class judges, or falsification_rate; without, the latter "
        "judges all samples together.",
    )
    attribute: str | None = Field(None, description="Attribute whose groups the statistic group_gap compares.")
    at_least: Number | None = Field(
        None,
        description="tau: smallest acceptable value of a statistic of which more is better (wcr, fp, value, "
        "class_mean, class), in its unit.",
    )
    at_most: Number | None = Field(
        None,
        description="tau: largest acceptable value of a statistic of which less is better (rdi, nrgc, group_gap, "
        "falsification_rate).",
    )
    confidence: Confidence = Field(0.95, description="Confidence for all models, rules and looks together.")
    looks: Looks = Field(default_factory=Looks)
    on_inconclusive: Literal["stop", "pass"] = Field(
        "stop", description="Whether the target gate stops when this rule is undecided: stop or pass."
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        given = [direction for direction in DIRECTIONS if getattr(self, direction) is not None]
        if len(given) != 1:
            raise refusal(f"a rule needs one threshold, either {' or '.join(DIRECTIONS)}; give one")
        # The other direction would pass the worst classifiers and fail the best.
        direction = direction_of(self.statistic)
        if given != [direction]:
            better = "more" if direction == "at_least" else "less"
            what = f"{self.statistic} of {self.measure}"
            raise refusal(f"{what}: {better} is better; give its threshold as {direction}", *given)
        if (self.attribute is not None) != (self.statistic == GROUP_GAP):
            raise refusal(f"the statistic {GROUP_GAP}, and no other, names an attribute", "attribute")
        if self.statistic != FALSIFICATION and (self.class_ is not None) != (self.statistic == ONE_CLASS):
            raise refusal(f"the statistics class and {FALSIFICATION}, and no other, name a class", "class")
        return self
