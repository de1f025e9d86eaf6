"""Datasets of labelled images from any source, attributes of their samples, and image corruptions."""
