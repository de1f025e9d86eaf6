"""Names of the numbers that summarise class values. Imports nothing, because the configuration is checked with them."""

SUMMARY = ("value", "class_mean", "rdi", "nrgc", "wcr", "fp")
"""Numbers that summarise the class values of a measure, in the order of every table: aggregate, then disparity."""

BETTER = dict.fromkeys(("value", "class_mean", "class", "wcr", "fp", "ihdi"), 1)
BETTER |= dict.fromkeys(("rdi", "nrgc", "rdi_over_mean", "group_gap", "falsification_rate"), -1)
"""Statistic -> 1 where the larger value is the better one, -1 where the smaller one is."""

UNCALIBRATED = "none"
"""Name in place of a calibration's: values at T = 1, and those of measures that have no temperature."""
