"""Names of an audit's models and classes, short and whole, and their places in every array of the page."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.identity import UNCALIBRATED
from gfscore.core.labels import readable_classes
from gfscore.core.names import model_labels, printable, shortened_all

LONGEST_MODEL, LONGEST_CLASS = 17, 17
"""Letters of names in pictures; tables and tooltips have all of them."""


class ModelsAndClasses:
    """Models and classes of an audit in the order of its tables: keys, whole names and short ones."""

    def __init__(self, class_scores: pd.DataFrame) -> None:
        """Read both from the table class_scores."""
        rows = class_scores[class_scores["calibration"] == UNCALIBRATED]
        identities = rows[["dataset", "threat", "model"]].drop_duplicates(ignore_index=True)
        self.models: list[tuple[str, str]] = list(identities[["threat", "model"]].itertuples(index=False, name=None))
        self.position = {model: place for place, model in enumerate(self.models)}
        self.labels = [printable(label) for label in model_labels(identities)]
        self.short = shortened_all(self.labels, LONGEST_MODEL)
        first = rows.drop_duplicates("class_index").sort_values("class_index")
        self.class_places: dict[int, int] = {index: place for place, index in enumerate(first["class_index"])}
        self.classes = [printable(name) for name in readable_classes(list(first["class_name"]))]
        self.class_short = shortened_all(self.classes, LONGEST_CLASS)

    def grid(self, rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
        """One column of class rows as (M, K), NaN where a model lacks a class."""
        result = np.full((len(self.models), len(self.classes)), np.nan)
        places = [self.position[model] for model in zip(rows["threat"], rows["model"], strict=True)]
        result[places, [self.class_places[index] for index in rows["class_index"]]] = rows[column]
        return result

    def per_model(self, rows: pd.DataFrame) -> list[dict[str, Any] | None]:
        """Rows of a table in the order of the models, as mappings; None for a model without a row."""
        found = {(row["threat"], row["model"]): row for row in rows.to_dict("records")}
        return [found.get(model) for model in self.models]

    def label(self, threat: str, model: str) -> str:
        """Whole name of a model."""
        return self.labels[self.position[threat, model]]
