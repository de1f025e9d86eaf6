"""Classifiers of every source: checkpoints, architectures, and the passes of images to logits."""
