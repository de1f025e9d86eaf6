"""Python's search path for the jobs of a run."""

import os
from pathlib import Path


def prepend_to_python_path(folder: Path | str) -> None:
    """Prepend a folder to PYTHONPATH, for all child processes.

    A gfscore that is installed or on the user's PYTHONPATH may be another version than the workflow's. Snakemake
    removes the variable in conda environments, which contain no gfscore.
    """
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys([str(folder), *others])))
