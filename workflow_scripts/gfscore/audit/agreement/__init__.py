"""Comparison of measures with each other: rank correlations, falsification by attacks, survival over distance."""
