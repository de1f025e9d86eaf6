"""The setting `remedy` put into the file of an audit that a user may have edited."""

from pathlib import Path

import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.workflow.adjusting.remedy_entry import with_remedy

HEAD = "# Written by: gfscore audit net.onnx images\nmeasures:\n  mine: {kind: adversarial}\n"
BLOCK = HEAD + "audits:\n  net:\n    # of my own\n    dataset: net\n    gate: []  # yours to decide\n"
REMEDY = {"objective": "floor", "floor": 0.3, "strengths": [0.25, 0.5]}


def changed(text, remedy=REMEDY):
    return with_remedy(text, "net", remedy, where=Path("audits/net.yaml"))


@pytest.mark.parametrize(
    "present",
    [
        "",
        "    remedy: {objective: rdi}\n",
        "    remedy:\n      objective: rdi\n      strengths:\n        - 0.5\n",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_one_setting_changes_and_no_other_line(present, first):
    text = BLOCK.replace("    dataset", present + "    dataset") if first else BLOCK + present
    result = changed(text)
    assert yaml.safe_load(result)["audits"]["net"]["remedy"] == REMEDY
    assert [line for line in result.splitlines() if "remedy" not in line] == BLOCK.splitlines()


def test_a_form_that_cannot_be_edited_is_left_to_the_user():
    with pytest.raises(InputError, match=r"audits/net\.yaml: write under audits, net, by hand: remedy: \{objective"):
        changed(HEAD + "audits: {net: {dataset: net}}\n")
