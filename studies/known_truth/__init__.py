"""Classifiers whose robustness is known in closed form, and what every measure says about them.

`planted` holds the images and the truth, `classifiers` the networks, `cases` each measure with the truth it ought to
tell, `suite` runs them, and `page` turns the rows into docs/known-truth.md.
"""
