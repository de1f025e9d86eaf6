"""What names the values of a classifier on a dataset in every stage."""

MODEL = "{dataset}/{threat}/{model}"
"""The same tail in every stage: the data evaluated, the threat, the classifier."""

UNCALIBRATED = "none"
"""Name in place of a calibration's: values at T = 1, and those of measures that have no temperature."""
