"""Every piece of configuration in the documents is accepted, and what they say of defaults is true."""

import re

import pytest
import yaml

from gfscore.networks.sources import trained
from gfscore.training.objectives import METHODS
from helpers.configurations import FILES, ROOT, completed, laid_over

DOCUMENTS = [
    path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if "```yaml" in path.read_text()
]


def blocks(document):
    return re.findall(r"^```yaml\n(.*?)^```", document.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_entries_of_a_document_are_valid_when_laid_over_the_shipped_configurations(document):
    config = {}
    for path in FILES:
        config = laid_over(config, yaml.safe_load(path.read_text()))
    for block in blocks(document):
        config = laid_over(config, yaml.safe_load(block))
    completed(config | {"run": ["digits"]})


def test_an_audit_that_stands_whole_on_a_page_is_one():
    page = ROOT / "docs/configuring.md"
    whole = completed(yaml.safe_load(blocks(page)[0]))
    assert whole["audits"]["pets"]["gate"][0]["at_least"] == 0.5
    assert whole["audits"]["pets"]["measures"] == ["clean", "great-softmax", "adversarial-linf-8of255"]
    of_readme = completed(yaml.safe_load(blocks(ROOT / "README.md")[0]))
    assert of_readme["audits"]["mine"]["models"] == ["mine/none/first", "mine/none/second"]


def test_the_table_of_training_methods_is_that_of_the_code():
    text = (ROOT / "docs/add-a-model.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.split("| method | trains on |")[1].split("\n\n")[0].splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == list(METHODS)
    settings = {
        model.model_fields["method"].annotation.__args__[0]: model for model in trained.Training.__subclasses__()
    }
    for row, method in zip(rows, METHODS, strict=True):
        fields = settings[method].model_fields
        threat = getattr(fields["threat"].annotation, "model_fields", {})
        assert re.findall("`(.*?)`", row[2]) == list(threat)
        assert re.findall("`(.*?)`", row[3]) == list(fields["coefficients"].annotation.model_fields)
