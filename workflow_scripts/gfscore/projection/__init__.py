"""Projection fairness: how far latent dimensions of an image can be moved before a prediction changes."""
