"""Names from outside: they cannot leave results/, break a command, or put a script into a page."""

import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from faults.audits import OPTIONS, OVERLAY, TARGETS
from gfscore.errors import InputError
from gfscore.workflow.configuration import complete_schema, require_valid

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "..", ".", ".hidden", "../up", "a/b", "a\\b", "/etc/passwd", "~", "-rf", "a b", "a'b", 'a"b', "$(touch ran)",
    "`touch ran`", "a;touch ran", "a|b", "a&b", "a>b", "{model}", "a*", "a?", "<script>alert(1)</script>", "a\nb",
    "a\n", "a\0b", "é", "\u202e", "%2e%2e", "a:b", "x" * 101, "",
]  # fmt: skip
HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "'; touch ran; '", "{{ 7*7 }} $(touch ran)",
]  # fmt: skip
FILE = 'it\'s a "file"; $(touch ran) & *.npy'


@pytest.fixture(scope="module")
def shipped():
    config = yaml.load((ROOT / "config.yaml").read_text(), Loader=yaml.CSafeLoader)
    schema = yaml.safe_load((ROOT / "rules/schemas/config.schema.yaml").read_text())
    schema = complete_schema(schema, ROOT / "workflow_scripts/gfscore/datasets")
    require_valid(config, schema)
    return config, schema


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["audits", "datasets", "measures", "models", "threat", "model"])
def test_what_becomes_a_part_of_a_path_holds_letters_digits_and_few_signs(shipped, place, name):
    config, schema = deepcopy(shipped[0]), shipped[1]
    zoo = config["models"]["digits"]
    inside = {"threat": zoo, "model": zoo["none"]}.get(place) or config[place]
    inside[name] = inside[next(iter(inside))]
    with pytest.raises(InputError, match=r"config\.yaml"):
        require_valid(config, schema)


@pytest.mark.parametrize("name", ["{model}.npy", "<b>.npy", "a}"])
@pytest.mark.parametrize("key", ["path", "list"])
def test_files_whose_names_snakemake_would_read_otherwise_are_refused_by_name(shipped, key, name):
    config, schema = deepcopy(shipped[0]), shipped[1]
    config["datasets"]["imagenet"][key] = name
    with pytest.raises(InputError, match=rf"datasets: imagenet: {key}: Snakemake takes .*{re.escape(name)}"):
        require_valid(config, schema)


def test_hostile_classes_titles_and_file_names_do_nothing(configured):
    repository = configured()
    overlay = yaml.safe_load(repository.read(OVERLAY))
    model = overlay["models"]["made"]["none"]["A"]
    (repository.path / model["path"]).rename(repository.path / FILE)
    model["path"] = FILE
    overlay["datasets"]["made"]["classes"] = HOSTILE[:3]
    overlay["audits"]["cheap"]["title"] = HOSTILE[3] + HOSTILE[0]
    overlay["report"] = {"contact": HOSTILE[1]}
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay))
    folder = "results/audits/cheap"
    repository.snakemake(*OPTIONS, "--", *TARGETS, f"{folder}/report.html", f"{folder}/dashboard.html")
    assert not [*repository.path.rglob("ran")]
    for page in ("report.html", "dashboard.html"):
        text = repository.read(f"{folder}/{page}")
        # As text each name is there; as markup or code none is.
        assert "touch ran" in text
        for markup in ("<img src=x", "<script>alert", "</script><script>a"):
            assert markup not in text, (page, markup)
        assert "49 $(touch" not in text
