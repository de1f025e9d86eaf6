"""What the jobs of a run loaded, and whether they asked for a network: see observer/sitecustomize.py."""

import json
import shutil
from pathlib import Path

OBSERVER = Path(__file__).parent / "observer"


def observing(folder):
    """Environment variables that make every Python of a run leave an observation in the folder, which is made."""
    Path(folder).mkdir(parents=True)
    return {"PYTHONPATH": str(OBSERVER), "GFSCORE_OBSERVATIONS": str(folder)}


def observe_in(prefix):
    """The same for one environment, where PYTHONPATH is of no use: Snakemake unsets it for jobs under conda."""
    (packages,) = Path(prefix).glob("lib/python3.*/site-packages")
    # By another name, since some systems have a sitecustomize of their own, which comes first.
    shutil.copy(OBSERVER / "sitecustomize.py", packages / "observer_of_jobs.py")
    (packages / "observer_of_jobs.pth").write_text("import observer_of_jobs\n")


def observations(folder):
    """What every Python of the run left: mappings with argv, prefix, executable, modules, variables, network."""
    return [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]


def step_of(observation):
    """Name of the step that a Python ran, None for others: Snakemake calls its copy <random>.<step>.py."""
    name = Path(observation["argv"][0]).name.split(".")
    return name[-2] if len(name) == 3 and "snakemake/scripts" in observation["argv"][0] else None
