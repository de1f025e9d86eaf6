"""Configuration laid over configuration, as Snakemake does it."""


def laid_over(below, above):
    """Mappings merged key by key, as Snakemake does for --configfile; everything else replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: laid_over(below.get(key), value) for key, value in above.items()}}
