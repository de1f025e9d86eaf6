"""Probabilistic robustness: sequential tests of the neighbourhood of an image."""
