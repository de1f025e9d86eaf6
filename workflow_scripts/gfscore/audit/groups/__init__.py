"""Fairness between groups of samples that are defined by attributes."""
