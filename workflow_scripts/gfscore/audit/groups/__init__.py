"""Fairness between groups of samples that attributes make."""
