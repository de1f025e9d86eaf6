"""Proven bounds of a network's logits over a ball."""
