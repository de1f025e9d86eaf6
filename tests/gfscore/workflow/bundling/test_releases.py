"""The gate of a release against the bundle of the last one: verdict, evidence, bundle, and what is refused."""

import shutil

import numpy as np
import pytest
from junitparser import JUnitXml

from gfscore.audit.verdicts.declines import RELEASE_VALUES
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import ModelName
from gfscore.core.software import software
from gfscore.measures import named_measures
from gfscore.tables.parquet_tables import read_identity, read_table, write_table
from gfscore.workflow.bundling import releases as releases_of_bundles
from gfscore.workflow.bundling.bundles import verify_bundle, write_bundle
from gfscore.workflow.bundling.releases import compared_models, values_for
from gfscore.workflow.command import main
from helpers import changed_bundles as bundles
from helpers.finished_audits import finished_audit

pytestmark = pytest.mark.seconds(30)

GOOD, BAD = ModelName("toy", "none", "good"), ModelName("toy", "none", "bad")
CLASSES = ["cat", "dog", "frog"]


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """A folder with `first/bundle`, and `second`, an audit whose model "good" declines in the class frog."""
    folder = tmp_path_factory.mktemp("releases")
    with pytest.MonkeyPatch.context() as patch:
        for name, signals, release in (("first", (3.0, 1.0), None), ("second", ((3, 3, 0), 1.0), "first/bundle")):
            (folder / name).mkdir()
            patch.chdir(folder / name)
            finished_audit(per_class=60, signals=signals, release=release and folder / release)
            write_bundle("toy", "bundle")
    return folder


@pytest.fixture
def here(releases, monkeypatch):
    monkeypatch.chdir(releases / "second")
    return releases


def test_the_gate_fails_the_model_whose_class_declined_and_passes_the_other(here, tmp_path):
    assert main(["gate", "toy", "--junit", str(tmp_path / "gate.xml")]) == 1
    verdict = read_verdict("results/audits/toy/verdict.json")
    by_model = {model.model: model for model in verdict.rules[0].models}
    assert {name: model.verdict for name, model in by_model.items()} == {"good": "FAIL", "bad": "PASS"}
    assert by_model["good"].worst_class == "frog" and by_model["good"].low > 0.3

    # The declines themselves, from the logits of both releases.
    decline = []
    for release in ("first", "second"):
        labels = np.load(here / release / "labels.npy")
        logits = np.load(here / release / "given/good.npy")
        decline.append((logits.argmax(axis=1) == labels)[labels == 2].mean())
    assert by_model["good"].value == pytest.approx(decline[0] - decline[1])

    report = JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert (report.tests, report.failures) == (4, 1)


def test_the_verdict_says_what_it_is_compared_with_and_the_page_too(here):
    verdict = read_verdict("results/audits/toy/verdict.json")
    digest = sha256_of_file(here / "first/bundle/statement.json")
    assert verdict.last_release.statement_sha256 == digest
    assert verdict.last_release.models == {"none/good": "none/good", "none/bad": "none/bad"}
    assert "results/releases/toy.parquet" in verdict.made_from
    assert digest in (here / "second/results/audits/toy/report.html").read_text()


def test_the_bundle_is_checked_without_the_last_release_and_its_values_cannot_be_edited(here, tmp_path):
    bundle = shutil.copytree(here / "second/bundle", tmp_path / "bundle")
    verification = verify_bundle(bundle)
    assert verification.faults == [] and "verdict" in verification.checked
    assert (
        read_verdict("results/audits/toy/verdict.json").last_release.statement_sha256
        in (verification.unchecked["last release"])
    )

    values = bundle / "releases/toy.parquet"
    frame, identity = read_table(values, RELEASE_VALUES), read_identity(values)
    write_table(values, RELEASE_VALUES, frame.assign(low=0.0, high=0.0), identity=identity)
    bundles.restated(bundle)
    assert any("verdict.json" in fault for fault in verify_bundle(bundle).faults)


def test_a_release_that_is_described_otherwise_is_a_fault_and_no_error(here, tmp_path):
    bundle = shutil.copytree(here / "second/bundle", tmp_path / "bundle")
    values = bundle / "releases/toy.parquet"
    identity = read_identity(values) | {"release": {"audit": "toy"}}
    write_table(values, RELEASE_VALUES, read_table(values, RELEASE_VALUES), identity=identity)
    bundles.restated(bundle)
    assert verify_bundle(bundle).faults


def test_the_gate_is_an_error_once_the_last_release_is_another(here, tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(here, tmp_path / "copy")
    monkeypatch.chdir(folder / "second")
    statement = here / "first/bundle/statement.json"
    content = statement.read_bytes()
    try:
        statement.write_bytes(content + b"\n")
        assert main(["gate", "toy"]) == 3
        assert "statement.json: not the file that toy was judged on" in capsys.readouterr().err
    finally:
        statement.write_bytes(content)


# ---- what is refused ----


def asked(folder, *, models=(GOOD, BAD), entry=None, measure="clean", digest=None, classes=CLASSES, model=None):
    measures = named_measures({measure: entry or {"kind": "clean"}})
    return values_for(
        folder,
        models=list(models),
        measures=list(measures.values()),
        dataset_digest=digest or read_json(folder / "datasets/toy.json")["digest"],
        classes=classes,
        model=model,
    )


def test_values_of_the_release_get_the_names_of_the_later_models(here):
    renamed = ModelName("toy-again", "none", "net-2")
    values, source = asked(here / "first/bundle", models=[renamed], model="none/bad")
    assert [item.model for item in values] == [renamed] and source.models == {"none/net-2": "none/bad"}
    logits, labels = np.load(here / "first/given/bad.npy"), np.load(here / "first/labels.npy")
    assert np.array_equal(values[0].low, logits.argmax(axis=1) == labels)


@pytest.mark.parametrize(
    ("request_", "facts"),
    [
        ({"digest": "e" * 64}, ["audit of other data", "bundle that"]),
        ({"classes": ["cat", "dog", "bird"]}, ["audit of other data"]),
        ({"measure": "adversarial-linf-8of255", "entry": {"kind": "adversarial", "norm": "linf", "eps": 8 / 255}}, ["holds no adv"]),
        ({"measure": "great-softmax", "entry": {"kind": "great", "activation": "sigmoid"}}, ["has activation 'softmax' in it, and 'sigmoid'"]),
        ({"models": [GOOD, ModelName("toy", "Linf", "new")]}, ["holds no Linf/new", "`model` of last_release"]),
        ({"model": "none/god"}, ["none/god", "none/good"]),
    ],
)  # fmt: skip
def test_a_release_that_cannot_be_compared_with_is_refused_by_name_with_the_remedy(here, request_, facts):
    with pytest.raises(InputError) as refused:
        asked(here / "first/bundle", **request_)
    assert str(refused.value).startswith(f"{here / 'first/bundle'}: ")
    assert not [fact for fact in facts if fact not in str(refused.value)], refused.value


def test_a_bundle_that_does_not_verify_is_refused_and_a_folder_that_is_none(here, tmp_path):
    bundle = shutil.copytree(here / "first/bundle", tmp_path / "bundle")
    (bundle / "scores/toy.parquet").write_bytes(b"no values")
    with pytest.raises(InputError, match=r"bundle: not a bundle to compare with: scores/toy.parquet"):
        asked(bundle)
    with pytest.raises(InputError, match="no such folder; name one that gfscore bundle made"):
        asked(tmp_path / "nowhere", digest="d" * 64)


def test_a_bundle_that_another_commit_judged_says_so_where_it_does_not_verify(here, tmp_path, monkeypatch):
    bundle = shutil.copytree(here / "first/bundle", tmp_path / "bundle")
    (bundle / "scores/toy.parquet").write_bytes(b"no values")
    monkeypatch.setattr(releases_of_bundles, "software", lambda: software() | {"commit": "d" * 40})
    with pytest.raises(InputError, match=f"this is .*commit {'d' * 40}.*: audit the last release with this version"):
        asked(bundle)


def test_models_are_compared_by_name_or_the_only_ones_or_the_one_that_is_named():
    new = ModelName("toy", "Linf", "new")
    assert compared_models([GOOD, BAD], [BAD, GOOD], model=None, where="") == {GOOD: GOOD, BAD: BAD}
    assert compared_models([new], [GOOD], model=None, where="") == {new: GOOD}
    assert compared_models([new, GOOD], [GOOD, BAD], model="none/bad", where="") == {new: BAD, GOOD: BAD}
    with pytest.raises(InputError, match="holds no Linf/new"):
        compared_models([new, GOOD], [GOOD], model=None, where="folder")
