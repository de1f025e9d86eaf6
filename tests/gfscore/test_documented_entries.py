"""Every piece of configuration in the documents is accepted, and what they say of defaults is true."""

import re

import pytest
import yaml

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
