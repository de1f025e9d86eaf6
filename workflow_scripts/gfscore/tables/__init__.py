"""Parquet tables of results/, and readers of users' files: logits, arrays, values per sample."""
