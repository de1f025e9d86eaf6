"""Attacks within a ball and to the nearest misclassified point, and signs that gradients mislead them."""
