"""Measures against each other: agreement of ranks, refutations by attacks, survival over distance."""
