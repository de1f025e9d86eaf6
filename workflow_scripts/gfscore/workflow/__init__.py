"""Configuration checks and defaults, paths of files for Snakemake's rules, and logging and errors of jobs.

What the Snakefile imports, here and in other layers, imports neither numpy nor pandas nor torch; a test asserts it.
"""
