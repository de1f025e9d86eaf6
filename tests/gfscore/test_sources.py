"""Every registered source of datasets, attributes and models, and every kind of mapper: the same contract for each."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import ValidationError

import gfscore
from gfscore.core.discovery import declarations
from gfscore.images.attribute_source import SOURCES as ATTRIBUTE_SOURCES
from gfscore.images.attribute_source import attribute_sources
from gfscore.images.dataset_source import SOURCES, dataset_sources
from gfscore.networks.model_source import model_sources, module_of
from gfscore.projection.mappers.declared import mapper_kinds
from gfscore.workflow.config_files import children

KINDS = {
    "datasets": ("source", dataset_sources()),
    "attributes": ("source", attribute_sources()),
    "models": ("source", model_sources()),
    "mappers": ("kind", mapper_kinds()),
}
NEEDED = {
    "path": "x", "task": "Smiling", "corruption": "fog", "severity": 1, "fitted_on": "d", "fixed_on": "d", "columns": ["age"],
    "architecture": "a.b:c", "dataset": "cifar10", "threat": "L2", "model": "X", "train_on": "d", "evaluate_on": "d",
    "training": {"method": "ERM"}, "trust_pickle": True, "sha256": "0" * 64,
    "of": "none/x", "choose_on": "d", "measure": "m",
    "classes": ["a", "b"], "generator": {"path": "g.pth", "architecture": "a.b:c", "latent": [4]},
}  # fmt: skip
"""A value of every setting that some entry must state."""

DECLARED = [
    pytest.param(section, tag, kind, id=f"{section}-{name}")
    for section, (tag, known) in KINDS.items()
    for name, kind in known.items()
]


def smallest(tag, kind):
    """The settings of an entry that states no more than it must."""
    fields = kind.settings.model_fields
    # Of quantiles, which the digits' own attributes are cut at, somebody must say whose they are.
    needed = [name for name, field in fields.items() if field.is_required() or name == "fixed_on"]
    return {tag: kind.name} | {name: NEEDED[name] for name in needed}


@pytest.mark.parametrize(("section", "tag", "kind"), DECLARED)
def test_settings_are_closed_complete_and_described(section, tag, kind):
    entry = smallest(tag, kind)
    settings = kind.settings.model_validate(entry)
    explicit = settings.explicit()
    assert next(iter(explicit)) == tag and explicit[tag] == kind.name
    # What is explicit means the same again, and holds plain values only.
    assert kind.settings.model_validate(explicit).explicit() == explicit
    plain = [explicit]
    while plain:
        value = plain.pop()
        assert isinstance(value, dict | list | str | int | float | None)
        plain += [part for _, part in children(value)]
    with pytest.raises(ValidationError):
        kind.settings.model_validate(entry | {"zzz": 1})
    undescribed = [name for name, field in kind.settings.model_fields.items() if name != tag and not described(field)]
    assert not undescribed


def described(field):
    shared = {"seed", "attack", "search", "generator", "size", "interpolation", "preprocessing"}
    return field.description or any(name in str(field).lower() for name in shared)


def test_every_source_is_a_file_that_opens_and_no_two_claim_one_entry():
    for sources, folder in ((dataset_sources(), SOURCES), (attribute_sources(), ATTRIBUTE_SOURCES)):
        for name, source in sources.items():
            assert source.name == name and callable(import_module(f"{folder}.{name}").open_source)
    for name, source in model_sources().items():
        if source.opened_by:
            assert callable(module_of(name).open_classifier)
    for _, known in (KINDS["datasets"], KINDS["models"]):
        for tag_free in [{**smallest("source", kind)} for kind in known.values()]:
            tag_free.pop("source")
            assert sum(kind.claims(tag_free) for kind in known.values()) <= 1, tag_free


def test_a_declaration_is_found_by_itself_and_nothing_else_of_its_folder_is_imported(tmp_path, monkeypatch):
    folder = tmp_path / "things"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "one.py").write_text("THING = 1\n")
    (folder / "other.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert declarations("things", "THING") == {"one": 1}


def test_declarations_import_nothing_heavy():
    code = (
        "import sys; from gfscore.images.dataset_source import dataset_sources; from gfscore.networks.model_source import model_sources;"
        "from gfscore.images.attribute_source import attribute_sources; from gfscore.projection.mappers.declared import mapper_kinds;"
        "dataset_sources(), model_sources(), attribute_sources(), mapper_kinds();"
        "print([name for name in ('numpy', 'pandas', 'torch', 'scipy', 'pyarrow') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": str(Path(gfscore.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
