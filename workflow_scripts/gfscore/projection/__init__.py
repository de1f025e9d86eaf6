"""Projection fairness: how far latent dimensions of an image can be moved before a prediction changes.

`mappers` holds the encoders and decoders whose dimensions are moved, `boundaries` the search for the smallest move, and
`scores` the numbers that summarise the moves of a classifier.
"""
