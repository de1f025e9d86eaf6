"""Labelled images, their attributes and their corruptions, whatever they are stored in."""
