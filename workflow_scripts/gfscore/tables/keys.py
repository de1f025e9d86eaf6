"""Key columns that many tables share."""

import pyarrow as pa

ALL = -1
"""Value of class_index, or of dimension_index, for all of them together, with ALL_NAME as the name."""

ALL_NAME = "all"

MODEL = (
    ("dataset", pa.string(), "data evaluated"),
    ("threat", pa.string(), "threat model the classifier was made for"),
    ("model", pa.string(), "classifier"),
)

MEASURED = (*MODEL, ("measure", pa.string(), "key of config.yaml's measures"))

SUMMARISED = (
    *MEASURED,
    ("calibration", pa.string(), "none, or the objective that chose the temperature"),
    ("temperature", pa.float64(), "temperature of the score; null except for great"),
)
"""Key columns of values of one model, measure and temperature."""
