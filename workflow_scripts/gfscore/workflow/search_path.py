"""Where the jobs of a run look for Python modules."""

import os
from pathlib import Path


def search_first(folder: Path | str) -> None:
    """Let every job started from here look into a folder before all others.

    A gfscore that is installed too, or stands on the user's PYTHONPATH, may be another than the workflow's own.
    Snakemake drops the variable within conda environments, which hold no gfscore.
    """
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys([str(folder), *others])))
