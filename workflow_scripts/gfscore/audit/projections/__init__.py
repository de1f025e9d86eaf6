"""Projections of all models of an audit: rows of its tables."""
