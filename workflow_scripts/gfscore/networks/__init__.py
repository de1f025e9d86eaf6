"""Classifiers of every source: checkpoints, architectures, and inference from images to logits."""
