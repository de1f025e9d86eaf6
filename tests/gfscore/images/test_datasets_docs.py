"""The adapter of docs/add-a-dataset.md is found, described by itself, and works."""

import re
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
import yaml

from gfscore.core.errors import InputError
from gfscore.images import dataset_source as _declared
from gfscore.images.dataset_source import dataset_sources
from gfscore.images.datasets import load_all, open_images
from gfscore.images.manifests import open_and_describe
from gfscore.workflow.sources import sources_of
from helpers.configurations import ROOT, completed

PAGE = (ROOT / "docs/add-a-dataset.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_every_source_for_images_has_an_entry_on_the_page():
    entries = [entry for block in blocks("yaml") for entry in yaml.safe_load(block)["datasets"].values()]
    assert {entry["source"] for entry in entries} == set(dataset_sources()) - {"labels"}


@pytest.fixture
def adapter(tmp_path, monkeypatch):
    """The adapter of the page as a source named idx, without touching the package."""
    path = tmp_path / "idx.py"
    path.write_text(blocks("python")[0])
    specification = spec_from_file_location("gfscore.images.sources.idx", path)
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "gfscore.images.sources.idx", module)
    found = _declared.declarations("gfscore.images.sources", "SOURCE") | {"idx": module.SOURCE}
    monkeypatch.setattr(_declared, "declarations", lambda package, name: found)
    dataset_sources.cache_clear()
    yield path
    dataset_sources.cache_clear()


def test_the_adapter_of_the_page_is_complete_and_described_by_itself(adapter, tmp_path):
    entry = {"source": "idx", "path": "images", "labels": "labels", "models_of": "cifar10"}
    config = completed(
        {"datasets": {"mnist": entry}, "audits": {"a": {"dataset": "mnist", "models": ["cifar10/L2/*"]}}}
    )
    assert config["datasets"]["mnist"]["labels"] == "labels"
    pixels = np.random.default_rng(0).integers(0, 256, (4, 8, 9), dtype=np.uint8)
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(bytes([0, 0, 8, 3]) + np.array([4, 8, 9], dtype=">i4").tobytes() + pixels.tobytes())
    labels.write_bytes(bytes([0, 0, 8, 1]) + np.array([4], dtype=">i4").tobytes() + bytes([0, 1, 1, 0]))
    settings = {"source": "idx", "labels": str(labels), "subset": None, "digest": None}
    opened = open_images(settings, images, classes=["zero", "one"])
    np.testing.assert_array_equal(load_all(opened)[0][:, 0], pixels.astype(np.float32) / np.float32(255))
    assert open_and_describe(settings, images, dataset="mnist", classes=["zero", "one"])[1]["samples_per_class"] == [
        2,
        2,
    ]
    images.write_bytes(images.read_bytes()[:-1])
    with pytest.raises(InputError, match="images: not a whole IDX file"):
        open_images(settings, images, classes=["zero", "one"])


def test_a_new_adapter_changes_the_code_of_no_step(adapter, tmp_path):
    """Cheap steps re-run when a file of theirs changes; the others list no code at all."""
    copy = shutil.copytree(
        ROOT / "workflow_scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__")
    )
    before = {script: sources_of(script) for script in copy.glob("*.py")}
    shutil.copy(adapter, copy / "gfscore/images/sources")
    assert before
    assert {script: sources_of(script) for script in copy.glob("*.py")} == before
