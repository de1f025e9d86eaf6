"""Configurations that YAML reads without a word and nobody meant, and where their keys stand."""

import pytest

from gfscore.core.errors import InputError
from gfscore.workflow.config_files import MAX_VALUES, Mark, mark_of, read_configuration, require_bounded_size
from helpers.configurations import FILES


@pytest.fixture
def written(tmp_path):
    def write(content, name="mine.yaml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shipped_configurations_are_clear(path):
    assert read_configuration([path], {})["audits"]


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("run: []\naudits: {}\nrun: [digits]\n", ["mine.yaml, line 3", "'run'", "line 1"]),
        ("audits:\n  mine:\n    gate: []\n    gate: [1]\n", ["line 4", "'gate'", "line 3"]),
        ("models: {a: 1, a: 2}\n", ["line 1", "'a'"]),
        ("models: [{a: 1}, {a: 1, b: 2,\n a: 3}]\n", ["line 2", "'a'", "line 1"]),
        ("a: {1: 1}\n", ["line 1", "the key 1", "quotes"]),
        ("a: {[p]: 1}\n", ["line 1", '["p"]', "quotes"]),
        (b"run: []\n# caf\xe9\n", ["mine.yaml, line 2", "UTF-8"]),
        ("run: [digits\naudits: {}\n", ["line 2", "not YAML"]),
        ("run:\n\t- digits\n", ["line 2", "not YAML"]),
        ("run: \x07\n", ["mine.yaml", "not YAML"]),
        ("a: !!python/object:os.system x\n", ["line 1", "not YAML"]),
        ("a: 1\n---\nb: 2\n", ["not YAML"]),
        ("", ["mine.yaml", "is empty"]),
        ("# all of it commented out\n", ["is empty"]),
        ("- run\n- audits\n", ["no keys at the top"]),
        ("run: " + "[" * 100_000, ["nested too deeply"]),
        ("run: " + "{" * 100_000, ["nested too deeply"]),
        ("run:\n  " + "- " * 100_000, ["nested too deeply"]),
        ("a: .nan\nb: -.inf\n", ["line 1: a: nan", "line 2: b: -inf"]),
        (f"a:\n  b: [1, {10**400}]\n", ["line 2: a: b: 1", "401 digits"]),
        (f"a: {-(2**63)}\n", ["19 digits"]),
    ],
)
def test_a_file_that_is_no_configuration_is_refused_with_its_place(written, content, facts):
    with pytest.raises(InputError) as refused:
        read_configuration([written(content)], {})
    text = str(refused.value)
    assert not [fact for fact in facts if fact not in text], text


def test_what_is_no_readable_file_is_refused(tmp_path):
    for path, fact in ((tmp_path, "Is a directory"), (tmp_path / "absent.yaml", "no such file")):
        with pytest.raises(InputError, match=fact):
            read_configuration([path], {})


@pytest.mark.parametrize(
    ("content", "data"),
    [
        (
            "a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: {<<: [*a], y: 3}\n",
            {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 1, "y": 3}},
        ),
        ("a: {x: 1}\nb: {x: 1}\n", {"a": {"x": 1}, "b": {"x": 1}}),
        ('{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
    ],
)
def test_aliases_merges_and_json_are_read(written, content, data):
    assert read_configuration([written(content)], {}) == data


def test_each_key_knows_where_it_stands_after_files_and_command_line_are_merged(written):
    one = written("a:\n  b: 1\n  c: [1,\n    2]\n", "one.yaml")
    two = written("# other\na:\n  b: 2\nd: {e: 5}\n", "two.yaml")
    config = read_configuration([one, two], {"d": {"f": [6]}})
    assert config == {"a": {"b": 2, "c": [1, 2]}, "d": {"e": 5, "f": [6]}}
    places = {
        ("a", "b"): (two, 3), ("a", "c"): (one, 3), ("a", "c", 1): (one, 4), ("d", "e"): (two, 4),
        # a key that is not there stands where it is missed
        ("a", "x"): (two, 2), ("x",): None,
    }  # fmt: skip
    for place, expected in places.items():
        assert mark_of(config, place) == (expected and Mark(str(expected[0]), expected[1])), place
    assert str(mark_of(config, ("d", "f", 0))) == "--config"


def test_aliases_that_grow_or_contain_themselves_are_refused_at_once(written):
    grown = ["l"] * 10
    for _ in range(8):
        grown = [grown] * 10
    endless = {}
    endless["again"] = [endless]
    for config in (grown, endless):
        with pytest.raises(InputError, match="more than 1,000,000 values"):
            require_bounded_size({"report": config})
    with pytest.raises(InputError, match="contains itself"):
        read_configuration([written("a: &a [*a]\n")], {})
    shared = {"steps": 20}
    require_bounded_size({"models": [shared] * (MAX_VALUES // 4)})
