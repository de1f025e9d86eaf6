"""Projection fairness: how far latent dimensions of an image can move before a prediction changes."""
