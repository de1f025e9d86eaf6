"""Training of classifiers, and generators of labelled images.

`loop` trains a classifier by one of the methods in `objectives`, with the optimiser and the schedule of `recipe`.
`generators` fits a small class-conditional generative model, `drawing` draws samples of a user's own.
"""
