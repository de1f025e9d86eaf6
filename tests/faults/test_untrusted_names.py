"""Names from outside: they cannot leave results/, break a command, or put a script into a page."""

import csv
import glob
import html
import re
import shlex
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from faults.audits import OPTIONS, OVERLAY, TARGETS
from gfscore.core.settings import NAME_FORM
from gfscore.workflow.targets import EXPORTS
from helpers.configurations import refusal, shipped_configuration

pytestmark = pytest.mark.seconds(60)

NAMES = [
    "..", ".", ".hidden", "../up", "a/b", "a\\b", "/etc/passwd", "~", "-rf", "a b", "a'b", 'a"b', "$(touch ran)",
    "`touch ran`", "a;touch ran", "a|b", "a&b", "a>b", "{model}", "a*", "a?", "<script>alert(1)</script>", "a\nb",
    "a\n", "a\0b", "é", "\u202e", "%2e%2e", "a:b", "x" * 101, "",
]  # fmt: skip
HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "'; touch ran; '", "{{ 7*7 }} $(touch ran)",
]  # fmt: skip
"""Texts of classes and titles."""

GROUPS = ["\x1b]0;owned\x07", "</script><script>alert(2)</script>", "=cmd|' /C calc'!A0"]
"""Values of an attribute."""

FILE = 'it\'s a "file"; $(touch ran) & *'


@pytest.mark.parametrize("place", ["audits", "datasets", "mappers", "measures", "models", "threat", "model"])
def test_what_becomes_a_part_of_a_path_holds_letters_digits_and_few_signs(place):
    config = shipped_configuration()
    zoo = config["models"]["digits"]
    inside = {"threat": zoo, "model": zoo["none"]}.get(place) or config[place]
    entry = inside[next(iter(inside))]
    for name in NAMES:
        inside[name] = entry
        assert "config.yaml" in refusal(config), repr(name)
        del inside[name]


@pytest.mark.parametrize("name", ["{model}.npy", "<b>.npy", "a}"])
@pytest.mark.parametrize("key", ["path", "list"])
def test_files_whose_names_snakemake_would_read_otherwise_are_refused_by_name(key, name):
    config = shipped_configuration()
    config["datasets"]["imagenet"][key] = name
    assert re.search(rf"datasets: imagenet: {key}: .*{re.escape(name)}", refusal(config))


def test_accepted_names_mean_nothing_to_a_shell_a_page_or_a_path():
    """So they may stand in commands, in names and comments of jobs, in logs and in patterns of files."""

    accepted = [name for code in range(0x3000) for name in (chr(code), f"a{chr(code)}b") if NAME_FORM.fullmatch(name)]
    assert len(accepted) == 2 * 64 + 2
    for name in accepted:
        assert shlex.quote(name) == html.escape(name) == glob.escape(name) == name
        assert Path("a", name).parts == ("a", name) and name != ".." and name.isascii() and name.isprintable()


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "a <!-- <script>"])
def test_texts_that_would_end_a_script_of_the_report_of_snakemake_are_refused(text):
    for place in ("title", "architecture"):
        config = shipped_configuration()
        entries = {"title": config["audits"]["digits"]}
        zoos = [models for threats in config["models"].values() for models in threats.values()]
        named = [entry for models in zoos for entry in models.values() if "architecture" in entry]
        entries["architecture"] = named[0]
        entries[place][place] = text
        assert f"{place}: {text[text.index('<') :][:2]}" in refusal(config)


class Code(HTMLParser):
    """Collects what a browser would run of a page: scripts without the texts in them, handlers, addresses."""

    def __init__(self):
        super().__init__()
        self.found, self.script = [], False

    def handle_starttag(self, tag, attrs):
        self.found += [value or "" for name, value in attrs if name.startswith("on") or name in ("href", "src")]
        self.script = tag == "script" and not dict(attrs).get("type", "").endswith("json")

    def handle_endtag(self, tag):
        self.script = False

    def handle_data(self, data):
        if self.script:
            self.found.append(re.sub(r'"(?:[^"\\]|\\.)*"', "", data))


def code_of(page):
    parser = Code()
    parser.feed(page)
    return parser.found


def hostile(repository):
    """The cheap audit with texts and file names that would do harm, if anything read them as more than names."""
    overlay = yaml.safe_load(repository.read(OVERLAY))
    dataset, audit = overlay["datasets"]["made"], overlay["audits"]["cheap"]
    model = overlay["models"]["made"]["none"]["A"]
    for entry, name in ((model, f"{FILE}.npy"), (dataset, f"labels {FILE}.npy")):
        (repository.path / entry["path"]).rename(repository.path / name)
        entry["path"] = name
    with (repository.path / f"{FILE}.csv").open("w", newline="") as file:
        rows = [(f"row-{row:06d}", GROUPS[row % len(GROUPS)]) for row in range(120)]
        csv.writer(file).writerows([("who", "kind"), *rows])
    table = {"source": "table", "path": f"{FILE}.csv", "key": "who", "columns": ["kind"], "missing": "drop"}
    dataset |= {"classes": HOSTILE[:3], "attributes": table}
    groups = {"attributes": ["kind"], "positive": HOSTILE[0], "minimum_cell": 2, "balanced": None}
    audit |= {
        "title": f"{HOSTILE[3]}{HOSTILE[0]}`a <javascript:alert(3)>`_\n\n.. raw:: html\n\n   <b onload=alert(4)>",
        "groups": groups,
    }
    (repository.path / OVERLAY).write_text(yaml.safe_dump(overlay))


def test_hostile_texts_and_file_names_do_nothing(configured):
    repository = configured()
    hostile(repository)
    folder = "results/audits/cheap"
    pages = [f"{folder}/{page}.html" for page in ("report",)]
    output = repository.snakemake(*OPTIONS, "--", *TARGETS, *pages, *(f"{folder}/exports/{name}" for name in EXPORTS))
    repository.snakemake(*OPTIONS, "--report", "results/report.zip", "--", *pages)
    assert not [*repository.path.rglob("ran")]
    with zipfile.ZipFile(repository.path / "results/report.zip") as archive:
        texts = {"Snakemake's": archive.read("report/report.html").decode()}
    captions = re.findall(r'"caption": "((?:[^"\\]|\\.)*)"', texts["Snakemake's"])
    assert len(captions) >= len(pages)
    assert not [caption for caption in captions if re.search(r"<img|<b |href=.{0,2}javascript", caption)]
    texts |= {page: repository.read(page) for page in pages}
    for page, text in texts.items():
        # As text the names are there; nothing of them runs.
        assert "touch ran" in text and code_of(text), page
        assert not [found for found in code_of(text) if re.search(r"alert\(\d|^javascript:|^x$", found)], page
        assert "49 $(touch" not in text
    assert all("alert(2)" in texts[page] for page in pages)
    figures = [*(repository.path / folder / "figures").glob("*.svg")]
    assert any(path.name.startswith("group_") for path in figures)
    assert not [path for path in figures if "<script" in path.read_text() or "<img" in path.read_text()]
    written = [path for ending in ("log", "md", "tex") for path in (repository.path / "results").rglob(f"*.{ending}")]
    assert {".log", ".md", ".tex"} <= {path.suffix for path in written}
    # What moves the cursor or the title of a terminal
    assert "\x1b" not in output.text and not [path for path in written if "\x1b" in path.read_text()]
    for card in (repository.path / folder / "exports/model-cards").glob("*.md"):
        assert not re.search(r"(?<!\\)<", card.read_text().split("---\n", 2)[2])
