"""Confusions between classes, similarity of errors, and success of targeted attacks by class."""
