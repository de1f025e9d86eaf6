"""The command gfscore compare on two bundles: classes sample by sample, and the page of what changed."""

import base64
import io
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.settings import IntervalSettings
from gfscore.core.files import read_json, write_json
from gfscore.measures import Measure
from gfscore.statistics.class_bounds import bounds_of
from gfscore.workflow.bundling.bundles import write_bundle
from gfscore.workflow.bundling.contents import Bundle
from gfscore.workflow.command import main
from helpers.finished_audits import finished_audit


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Folder with the bundles `before`, `worse` (class frog of "good" declined) and `same` (other noise)."""
    folder = tmp_path_factory.mktemp("bundles")
    releases = {"before": ((3.0, 1.0), 0), "worse": (((3, 3, 0), 1.0), 0), "same": ((3.0, 1.0), 1)}
    with pytest.MonkeyPatch.context() as patch:
        for name, (signals, seed) in releases.items():
            (folder / f"{name}-run").mkdir()
            patch.chdir(folder / f"{name}-run")
            finished_audit(per_class=60, signals=signals, seed=seed, page=False)
            shutil.copytree("results", folder / name)
    return folder


def table_in(page, name):
    """Table that the page offers as a file."""
    encoded = re.search(rf'download="{name}" href="data:text/csv;base64,([^"]+)"', page)[1]
    return pd.read_csv(io.StringIO(base64.b64decode(encoded).decode()))


def outcomes(folder, model):
    logits, labels = np.load(folder / f"given/{model}.npy"), np.load(folder / "labels.npy")
    return (logits.argmax(axis=1) == labels).astype(float), labels


def compared(bundles, later, tmp_path, *options):
    folders = [str(bundles / name / "audits/toy") for name in ("before", later)]
    page = tmp_path / "compare.html"
    status = main(["compare", *folders, "--page", str(page), *options])
    return status, page.read_text()


def test_a_class_that_declined_is_named_on_the_page_with_its_numbers(bundles, tmp_path, capsys):
    status, page = compared(bundles, "worse", tmp_path)
    assert status == 1
    assert "worse   none/good, clean, class frog: " in capsys.readouterr().out
    rows = table_in(page, "classes.csv").set_index(["model", "measure", "class_name"])
    frog = rows.loc["good", "clean", "frog"]
    before, labels = outcomes(bundles / "before-run", "good")
    after, _ = outcomes(bundles / "worse-run", "good")
    assert frog["first"] == pytest.approx(before[labels == 2].mean())
    assert frog["change"] == pytest.approx((after - before)[labels == 2].mean())
    assert frog["verdict"] == "worse" and frog["low"] <= frog["change"] <= frog["high"] < 0
    assert set(rows.loc["bad"]["verdict"]) == {"undecided"}
    assert len(rows) == 2 * 2 * 3
    # The worst class of all models and measures is named first, so that the bounds hold for all of them.
    change = Measure(title="change", value_range=(-1.0, 1.0), unit="", explanation="")
    bounds = bounds_of(after - before, labels, 3, measure=change, intervals=IntervalSettings())
    _, high = bounds.interval(0.05 / (2 * 2))
    assert frog["high"] == pytest.approx(high[2])

    first_screen = page[: page.index('id="numbers"')]
    assert "WORSE" in first_screen and "frog" in first_screen
    assert "http" not in re.sub(r"http-equiv", "", page), "no request"


def test_where_no_class_is_surely_worse_the_page_says_what_may_be_hidden(bundles, tmp_path):
    status, page = compared(bundles, "same", tmp_path)
    rows = table_in(page, "classes.csv")
    assert status == 0 and set(rows["verdict"]) == {"undecided"}
    assert "NO CHANGE SHOWN" in page and "hidden" in page


def test_a_bundle_is_named_by_its_own_folder_and_must_be_as_stated(bundles, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(bundles / "before-run")
    finished_audit(per_class=60, signals=(3.0, 1.0))
    write_bundle("toy", tmp_path / "bundle")
    write_bundle("toy", tmp_path / "again")
    assert Bundle.read(tmp_path / "again").digests == Bundle.read(tmp_path / "bundle").digests
    assert main(["compare", str(tmp_path / "bundle"), "toy", "--page", str(tmp_path / "page.html")]) == 0
    digest = read_json(tmp_path / "bundle/audits/toy/verdict.json")["dataset"]["digest"]
    assert digest[:12] in (tmp_path / "page.html").read_text()
    shutil.copyfile(
        bundles / "worse/audits/toy/model_summary.parquet", tmp_path / "bundle/audits/toy/model_summary.parquet"
    )
    assert main(["compare", str(tmp_path / "bundle"), "toy"]) == 3
    assert "model_summary.parquet: edited or damaged, as statement.json says" in capsys.readouterr().err


@pytest.mark.parametrize(
    "case",
    [
        ("statement.json", [], "not the statement of a bundle (Input should be"),
        ("statement.json", {"predicate": {}}, "not the statement of a bundle (subject: Field required)"),
        ("statement.json", {"subject": [{"name": "a"}]}, "(subject.0.digest: Field required)"),
        ("audits/toy/verdict.json", {"verdict": "PASS"}, "not the verdict of an audit (rules: Field required)"),
        ("audits/toy/models.json", {"excluded": []}, "of an earlier version"),
        ("datasets/toy.json", {"classes": None}, "of an earlier version"),
    ],
)
def test_a_file_of_another_form_is_named_with_what_it_lacks(bundles, tmp_path, capsys, case):
    file, content, fault = case
    other = shutil.copytree(bundles / "same", tmp_path / "other")
    (other / file).unlink(missing_ok=True)
    if isinstance(content, dict):
        write_json(other / file, content)
    else:
        (other / file).write_text("[]")
    later = str(other if file == "statement.json" else other / "audits/toy")
    assert main(["compare", str(bundles / "before/audits/toy"), later]) == 3
    said = capsys.readouterr().err
    assert said.startswith("error: ") and f"{file}: " in said and fault in said


def test_tables_without_values_per_sample_give_no_page(bundles, tmp_path, capsys):
    alone = shutil.copytree(bundles / "before/audits/toy", tmp_path / "audits/toy")
    other = str(bundles / "same/audits/toy")
    assert main(["compare", str(alone), other, "--page", str(tmp_path / "page.html")]) == 3
    assert "values per sample are not beside it" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
    assert main(["compare", str(alone), other]) == 0
    assert "classes were not compared" in capsys.readouterr().out


def test_open_samples_are_a_band_between_the_two_audits(tmp_path, monkeypatch, capsys):
    bands = {"before": ([80, 70, 66], [90, 85, 80]), "after": ([85, 70, 30], [90, 85, 40])}
    folders = []
    for name, band in bands.items():
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        finished_audit(per_class=100, bands=(band, band), page=False)
        folders.append(str(tmp_path / name / "results/audits/toy"))
    assert main(["compare", *folders, "--page", str(tmp_path / "page.html")]) == 1
    printed = capsys.readouterr().out
    assert "class frog: 0.660 to 0.800, then 0.300 to 0.400, " in printed
    # A statistic has one end of what is open, and its intervals beside it.
    assert re.search(r"worse   none/good, robust\S*, wcr: 0\.660 \(0\.\d+ to 0\.\d+\), then 0\.300 \(0", printed)

    page = (tmp_path / "page.html").read_text()
    rows = table_in(page, "classes.csv").set_index(["model", "measure", "class_name"])
    frog = rows.loc["good", "robust-linf-2of255", "frog"]
    assert [frog["change_least"], frog["change_most"]] == pytest.approx([0.3 - 0.8, 0.4 - 0.66])
    assert frog["low"] < frog["change_least"] and frog["change_most"] < frog["high"] < 0
    decided = rows.loc["good", "adversarial-linf-2of255", "frog"]
    assert decided["change_least"] == decided["change"] == decided["change_most"]
    assert page[: page.index('id="numbers"')].count('class="band"') == 3 + 2


@pytest.mark.parametrize(("words", "question"), [(None, "PASS."), ("no class is below 0.9", "PASS, by other rules.")])
def test_verdicts_by_other_rules_are_said_to_be_that(bundles, tmp_path, words, question):
    folder = shutil.copytree(bundles, tmp_path / "copies")
    for name, stated in (("before", "FAIL"), ("same", "PASS")):
        path = folder / f"{name}/audits/toy/verdict.json"
        verdict = read_json(path) | {"verdict": stated}
        if words and name == "same":
            verdict["rules"][0]["words"] = words
        write_json(path, verdict)
    _, page = compared(folder, "same", tmp_path)
    assert f"The gate said FAIL, and now says {question}" in page
