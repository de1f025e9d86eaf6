"""Errors by class: confusions, similarity of models, corruptions, targeted attacks."""
