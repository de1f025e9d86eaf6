"""Parquet tables of results/, and the files of logits, arrays and values per sample that users hand in."""
