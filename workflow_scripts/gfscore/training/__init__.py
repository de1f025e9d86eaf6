"""Training of classifiers and of the class-conditional generative model."""
