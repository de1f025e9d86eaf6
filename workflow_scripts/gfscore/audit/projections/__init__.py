"""Projections of classifiers along the latent dimensions of mappers: scores, summaries, tasks."""
