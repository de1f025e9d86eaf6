"""Parquet tables of results/, and readers of users' files.

- `table`: what a table is, and the columns that many tables share; `parquet_tables`: written and read;
- `binary_files`, `csv_files`: .npy, .npz, .parquet and .csv files of others, in bounded memory and without unpickling;
- `logit_files`, `radius_files`: what such files mean: logits, labels, certified radii.
"""
