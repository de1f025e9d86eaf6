"""Name of what is not calibrated. Imports nothing."""

UNCALIBRATED = "none"
"""Name in place of a calibration's: values at T = 1, and those of measures that have no temperature."""
