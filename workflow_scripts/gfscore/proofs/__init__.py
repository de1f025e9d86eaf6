"""Proven bounds on what a network answers anywhere in a ball, which measures and training share."""
