"""Which files a step asks for, and where they stand."""

import os
import re
import time
from pathlib import Path

import pytest

from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.core.errors import InputError
from gfscore.workflow import layout
from gfscore.workflow.user_files import present, state

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("source", ["npz", "parquet", "labels", "mine"])
def test_images_in_one_file_are_watched_whatever_their_source(tmp_path, source):
    path = tmp_path / "images"
    config = {"datasets": {"d": {"source": source, "path": str(path)}}}
    assert layout.stored_images(config, "d") == []
    path.write_bytes(b"one")
    assert layout.stored_images(config, "d") == str(path)
    before = state(str(path))
    path.write_bytes(b"two")
    assert state(str(path)) != before


def test_a_file_from_the_future_is_named_with_what_to_do(tmp_path):
    path = tmp_path / "labels.npy"
    path.touch()
    assert present(str(path)) == str(path)
    in_two_hours = time.time() + 7200
    os.utime(path, (in_two_hours, in_two_hours))
    with pytest.raises(InputError, match=r"labels\.npy: .* is 2\.0 hours in the future.* with: touch .*labels\.npy$"):
        present(str(path))


def test_of_a_folder_of_images_the_list_is_watched(tmp_path):
    (tmp_path / "list.txt").touch()
    entry = {"source": "image_folder", "path": str(tmp_path), "list": str(tmp_path / "list.txt")}
    assert layout.stored_images({"datasets": {"d": entry}}, "d") == str(tmp_path / "list.txt")
    assert layout.stored_images({"datasets": {"d": entry | {"list": None}}}, "d") == []


def test_generated_images_are_an_input_before_they_are_there():
    for source in ("generated", "generator_file"):
        config = {"datasets": {"d": {"source": source}}, "audits": {"a": {"dataset": "d"}}}
        assert layout.stored_images(config, "d") == "results/generated/d.npz"
        assert layout.generator_manifest(config, "a") == "results/generated/d.json"


def test_a_pinned_digest_is_checked_of_every_dataset_that_an_audit_touches(config):
    def checks(results):
        return [path for path in results(config, "digits") if path.startswith("results/checks/")]

    assert checks(layout.logit_results) == []
    for name in ("digits-train", "cifar10"):
        config["datasets"][name]["digest"] = "0" * 64
    for results in (layout.logit_results, layout.verdict_results, layout.model_results):
        assert checks(results) == ["results/checks/digits-train.json"]


def test_a_verdict_stands_on_all_tables_and_measures_since_it_says_what_attacks_say(config):
    files = set(layout.verdict_results(config, "digits"))
    assert {"results/audits/digits/verdict.json", "results/audits/digits/class_scores.parquet"} < files
    assert set(layout.sample_files(config, "digits")) < files


def test_every_table_is_a_result_of_every_audit(config):
    config["audits"]["digits"]["measures"] = ["clean"]
    results = layout.audit_results(config, "digits")
    for table in TABLES_OF_AUDIT:
        assert {f"results/audits/digits/{table}.parquet", f"results/audits/digits/{table}.csv"} <= set(results)


def test_what_a_step_has_finished_waits_in_a_folder_that_begins_with_its_name():
    """A measure and a mapper may have one name, and each step removes its folder when it ends."""
    steps = []
    for path in (ROOT / "rules").glob("*.smk"):
        for block in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            steps += [(block.split(":")[0], name) for name in re.findall(r"results/progress/([^/]+)/", block)]
    assert len(steps) == 4 and all(step == name for step, name in steps), steps
