"""Configuration checks and defaults, paths of files for Snakemake's rules, and logging and errors of jobs."""
