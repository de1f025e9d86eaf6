"""The configurations that the repository ships with, complete, and what is refused of a changed one."""

from pathlib import Path

import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.workflow.config_files import Mark, marked, read_configuration
from gfscore.workflow.configuration import require_consistent
from gfscore.workflow.resolving import resolve

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "config.yaml"
FILES = [DEMO, *sorted((ROOT / "configs").glob("*.yaml"))]

CONDITIONAL = {"kind": "conditional", "train_on": "digits-train", "evaluate_on": "digits"}
"""A mapper that no shipped audit uses."""


def shipped_configuration(**more):
    """Every shipped audit in one complete configuration that a test may change; it runs the demo.

    Takes sections with what is in no shipped file.
    """
    asked = read_configuration(FILES, {"run": ["digits"], "mappers": {"digits-conditional": CONDITIONAL}, **more})
    return resolve(asked).config


def written(path=DEMO):
    """Content of a shipped file as its author wrote it, which a test may change."""
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


def completed(config, *, thorough=True):
    """The complete configuration that a mapping makes; InputError for one that is refused."""
    resolution = resolve(marked(config, Mark("config.yaml")))
    require_consistent(resolution, thorough=thorough)
    return resolution.config


def refusal(config):
    """Words with which a configuration is refused."""
    with pytest.raises(InputError) as refused:
        completed(config)
    return str(refused.value)


def refusal_with(config, path, value):
    """Words with which a configuration is refused once this value stands at the end of a path of keys."""
    part = config
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return refusal(config)
