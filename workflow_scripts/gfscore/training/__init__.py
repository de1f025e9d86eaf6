"""Training of classifiers and of the generative model of the embedded data."""
