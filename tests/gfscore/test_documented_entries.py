"""Every piece of configuration in the documents is accepted by the schema."""

import re
from pathlib import Path

import pytest
import yaml

from gfscore.workflow.configuration import complete_schema, require_valid
from overlays import laid_over

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [path for path in sorted((ROOT / "docs").glob("*.md")) if "```yaml" in path.read_text()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_entries_of_a_document_are_valid_when_laid_over_the_shipped_configuration(document):
    schema = yaml.safe_load((ROOT / "rules/schemas/config.schema.yaml").read_text())
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    for block in re.findall(r"^```yaml\n(.*?)^```", document.read_text(), flags=re.MULTILINE | re.DOTALL):
        config = laid_over(config, yaml.safe_load(block))
    require_valid(config, complete_schema(schema, ROOT / "workflow_scripts/gfscore/datasets"))
