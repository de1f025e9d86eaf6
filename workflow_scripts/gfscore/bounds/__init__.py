"""Confidence bounds, tests, and how many samples they need."""
