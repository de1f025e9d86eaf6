"""What Snakemake asks: the config checked and looked up, where files stand, what a job does around its step."""
