"""Every piece of configuration in the documents is accepted by the schema."""

import inspect
import re
from pathlib import Path

import pytest
import yaml

from gfscore.training.objectives import METHODS
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
    require_valid(config, complete_schema(schema, ROOT / "workflow_scripts/gfscore/images/sources"))


def test_the_table_of_training_methods_is_that_of_the_code():
    text = (ROOT / "docs/add-a-model.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.split("| method | trains on |")[1].split("\n\n")[0].splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == list(METHODS)
    for row, method in zip(rows, METHODS.values(), strict=True):
        asked = re.search(r"setup\.attack\((.*?)\)", inspect.getsource(method))
        assert re.findall("`(.*?)`", row[2]) == (re.findall('"(.*?)"', asked[1]) if asked else [])
        assert re.findall("`(.*?)`", row[3]) == list(inspect.signature(method).parameters)[1:]
