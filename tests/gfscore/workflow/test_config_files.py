"""Configurations that YAML reads without a word and nobody meant."""

import pytest

from gfscore.core.errors import InputError
from gfscore.workflow.config_files import MOST, require_mapping, require_unambiguous, require_written_out
from workflow.conftest import ROOT


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_shipped_configuration_is_clear():
    require_unambiguous(ROOT / "config.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run: []\naudits: {}\nrun: [digits]\n", r"mine\.yaml: line 3: the key 'run' stands in line 1"),
        ("audits:\n  mine:\n    gate: []\n    gate: [1]\n", r"line 4: the key 'gate' stands in line 3"),
        ("models: {a: 1, a: 2}\n", r"line 1: the key 'a' stands in line 1"),
        ("models: [{a: 1}, {a: 1, b: 2,\n a: 3}]\n", r"line 2: the key 'a' stands in line 1"),
    ],
)
def test_a_key_given_twice_is_named_with_its_lines(written, text, message):
    with pytest.raises(InputError, match=message):
        require_unambiguous(written(text))


@pytest.mark.parametrize(
    "text",
    [
        "a: &a {x: 1}\nb: &b {y: 1}\nc: {<<: *a, x: 2}\nd: {<<: [*a, *b]}\n",
        "a: &a [*a]\n",
        "a: {x: 1}\nb: {x: 1}\n",
        "a: {1: 1, '1': 2, [p]: 3, [q]: 4}\n",
        "",
        "a: [unclosed\n",
    ],
)
def test_merges_aliases_and_what_is_no_yaml_are_left_alone(written, text):
    require_unambiguous(written(text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"run: []\n# caf\xe9\n", r"mine\.yaml: line 2 is not UTF-8 text; save it as UTF-8"),
        (b"run: [digits\naudits: {}\n", r"mine\.yaml: line 2: no YAML \(.*\); .*close every bracket"),
        (b"run:\n\t- digits\n", r"mine\.yaml: line 2: no YAML \(.*\); .*indent with spaces"),
        (b"run: \x07\n", r"mine\.yaml: no YAML \(.*\); "),
        (b"", r"mine\.yaml: is empty; give it sections such as `run:`"),
        (b"# all of it commented out\n", r"mine\.yaml: is empty; give it sections such as `run:`"),
        (b"- run\n- audits\n", r"mine\.yaml: has no keys at its top; give it sections such as `run:`"),
    ],
)
def test_a_configuration_that_is_no_mapping_is_one_line_with_its_place_and_a_remedy(tmp_path, content, message):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        require_mapping(path)
    assert "\n" not in str(caught.value)


def test_what_is_no_readable_file_or_nested_without_end_is_refused(written, tmp_path):
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        require_mapping(tmp_path)
    with pytest.raises(InputError, match="nested too deeply"):
        require_mapping(written("run: " + "[" * 100_000))


def test_a_mapping_passes_and_an_absent_configuration_is_left_to_snakemake(written, tmp_path):
    require_mapping(written("run: [digits]\n"))
    require_mapping(tmp_path / "absent.yaml")


def test_aliases_that_grow_or_contain_themselves_are_refused_at_once():
    grown = ["l"] * 10
    for _ in range(8):
        grown = [grown] * 10
    endless = {}
    endless["again"] = [endless]
    for config in (grown, endless):
        with pytest.raises(InputError, match="more than 1,000,000 values"):
            require_written_out({"report": config})


def test_aliases_of_a_usual_size_are_not_refused():
    shared = {"steps": 20}
    require_written_out({"models": [shared] * (MOST // 4)})
