"""The configuration that the repository ships with, its schema, and what is refused of a changed one."""

from pathlib import Path

import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.workflow.configuration import complete_schema, require_valid

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = complete_schema(
    yaml.safe_load((ROOT / "rules/schemas/config.schema.yaml").read_text()),
    ROOT / "workflow_scripts/gfscore/images/sources",
)


def shipped_configuration():
    """A copy of config.yaml that a test may change."""
    return yaml.load((ROOT / "config.yaml").read_text(), Loader=yaml.CSafeLoader)


def refusal(config):
    """Words with which a configuration is refused."""
    with pytest.raises(InputError) as refused:
        require_valid(config, SCHEMA)
    return str(refused.value)
