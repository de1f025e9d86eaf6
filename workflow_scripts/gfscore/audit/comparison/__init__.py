"""Comparison of models: paired tests, ranks, and the dependence of rankings on metric and lambda."""
