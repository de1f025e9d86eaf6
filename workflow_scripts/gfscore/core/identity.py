"""What names the values of a classifier on a dataset in every stage."""

MODEL = "{dataset}/{threat}/{model}"
"""The same tail in every stage: the data evaluated, the threat, the classifier."""
