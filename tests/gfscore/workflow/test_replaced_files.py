"""Data of earlier runs against the digests that a configuration pins by now."""

import pytest

from gfscore.core.files import write_json
from gfscore.workflow.plan import Run
from gfscore.workflow.replaced_files import other_than_pinned
from helpers.configurations import shipped_configuration

DIGEST = "ab" * 32
MANIFEST = "results/datasets/digits-train.json"


def messages(pinned, **options):
    """Messages for the audit of the demo, where a dataset that its models are trained on has a pinned digest."""
    config = shipped_configuration()
    config["datasets"]["digits-train"]["digest"] = pinned
    return other_than_pinned([Run(config).audits["digits"]], fetched_anew=options.get("fetched_anew", ()))


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """The manifest of an earlier run, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_json(MANIFEST, {"dataset": "digits-train", "digest": DIGEST})


@pytest.mark.usefixtures("fetched")
def test_the_pinned_digest_is_that_of_the_manifest_in_either_case_of_letters():
    assert messages(None) == messages(DIGEST) == messages(DIGEST.upper()) == []


@pytest.mark.usefixtures("fetched")
def test_another_digest_is_refused_unless_the_data_are_fetched_anew():
    (message,) = messages("0" * 64)
    assert MANIFEST in message and DIGEST in message and "0000" in message
    assert messages("0" * 64, fetched_anew={MANIFEST}) == []


def test_data_that_no_run_has_fetched_are_left_to_the_step_that_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert messages("0" * 64) == []
