"""A bundle is accepted as it was made, wherever it lies, and refused after any single change."""

import contextlib
import errno
import json
import os
import shutil
import subprocess
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from gfscore.audit.samples import write_scores
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core import software as checkout
from gfscore.core.digests import write_checksummed
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.images.dataset_source import dataset_settings
from gfscore.measures.samples import table_of
from gfscore.show.page.provenance import time_of
from gfscore.tables.parquet_tables import typed_frame, write_table
from gfscore.workflow.bundling.bundles import verify_bundle, write_bundle
from gfscore.workflow.bundling.contents import PREDICATE_TYPE, STATEMENT, TYPE, Bundle, image_file, name_of, sign
from gfscore.workflow.bundling.recomputed import Recomputed
from gfscore.workflow.entries import PlannedDataset
from gfscore.workflow.plan import Run
from helpers import changed_bundles as bundles
from helpers.configurations import shipped_configuration
from helpers.finished_audits import finished_audit

pytestmark = pytest.mark.seconds(110)


@pytest.fixture(scope="module", autouse=True)
def clean_checkout():
    """A checkout whose code is that of its commit, wherever these tests run."""
    commit = {"rev-parse": "c" * 40}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkout, "_git", lambda *arguments: commit.get(arguments[0], ""))
        checkout.software.cache_clear()
        yield commit
    checkout.software.cache_clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory, clean_checkout):
    """Folders with a finished audit and a bundle of it, from logits alone and with attacks."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for attacked in (False, True):
            found[attacked] = tmp_path_factory.mktemp("attacked" if attacked else "logits")
            patch.chdir(found[attacked])
            finished_audit(attacked=attacked)
            write_bundle("toy", "bundle", parts=["logits", "networks", "images"] if attacked else ["logits"])
    return found


@pytest.fixture
def bundle(made, tmp_path, request):
    """A copy of a bundle, at another path."""
    return shutil.copytree(made[getattr(request, "param", False)] / "bundle", tmp_path / "elsewhere/copy")


both = pytest.mark.parametrize("bundle", [False, True], indirect=True, ids=["logits", "attacked"])


@both
def test_the_untouched_bundle_is_accepted_also_at_another_path(bundle):
    found = verify_bundle(bundle, required=["logits"])
    assert found.faults == []
    assert {"digests", "labels", "logits", "tables", "verdict", "statement"} <= set(found.checked)
    assert "signature" in found.unchecked and "page" in found.checked


def test_what_was_not_handed_on_is_said_and_can_be_required(bundle):
    found = verify_bundle(bundle, required=["networks", "signature"])
    assert {"networks", "images"} <= set(found.unchecked) and len(found.faults) == 2


@pytest.mark.parametrize("attacked", [False, True], ids=["logits", "attacked"])
@pytest.mark.parametrize("restated", [False, True], ids=["old statement", "statement that fits"])
def test_every_single_change_is_refused_also_with_a_statement_that_fits_it(made, tmp_path, attacked, restated):
    whole, accepted = made[attacked] / "bundle", []
    numbers = range(len(bundles.changes_of(attacked=attacked)))
    if attacked and restated:
        # Every content is computed again: of files that a bundle without attacks has not.
        numbers = [number for number in numbers if bundles.concerns_attacks(number)]
    for number in numbers:
        folder = shutil.copytree(whole, tmp_path / "copy")
        what = bundles.changed(folder, number, attacked=attacked)
        if restated and "statement" not in what:
            bundles.restated(folder)
        if not verify_bundle(folder).faults:
            accepted.append(what)
        shutil.rmtree(folder)
    assert accepted == []


@pytest.mark.parametrize("bundle", [True], indirect=True)
@pytest.mark.parametrize("key", ["dataset", "threat", "model", "source", "path", "files", "settings"])
def test_a_manifest_of_a_checkpoint_says_of_it_what_the_configuration_says(bundle, key):
    path = bundle / "checkpoints/toy/none/good.json"
    manifest = read_json(path)
    bundles.with_other_leaf(manifest, Random(0), but=manifest.keys() - {key})
    write_json(path, manifest)
    bundles.restated(bundle)
    assert any(fault.startswith("checkpoints/toy/none/good.json: ") for fault in verify_bundle(bundle).faults)


def test_a_manifest_of_a_training_names_the_model_and_the_checkpoint_that_was_measured(tmp_path):
    audit = Run(shipped_configuration()).audits["digits"]
    names = {name_of(path): path for path in (audit.dataset.manifest, *audit.trained_manifests())}
    for model in audit.models:
        write_json(tmp_path / name_of(model.manifest), {**model.name.columns(), "sha256": "a" * 64})
        for measure in audit.measures.values():
            path = model.samples(measure.name)
            settings = json.dumps(measure.settings.explicit(), sort_keys=True)
            identity = {"dataset_digest": "d", "settings": settings, "checkpoint_sha256": "a" * 64}
            (tmp_path / name_of(path)).parent.mkdir(parents=True, exist_ok=True)
            table = table_of(measure.kind.name)
            write_table(tmp_path / name_of(path), table, typed_frame(table, []), identity=identity)
            names[name_of(path)] = path
    write_json(tmp_path / name_of(audit.dataset.manifest), {"digest": "d"})
    names[f"scores/{audit.name}.parquet"] = ""
    write_scores(tmp_path / f"scores/{audit.name}.parquet", [], identity={"logits": {}})
    recomputed = Recomputed(Bundle(tmp_path, names, audit.name), audit)
    assert list(recomputed.measurements()) == []

    path = tmp_path / "trained/digits/none/ERM.json"
    whole = read_json(path)
    for key in whole:
        write_json(path, whole | {key: "b" * 64})
        assert any(" is not what follows" in fault for fault in recomputed.measurements()), key


def test_an_older_verdict_beside_newer_samples_is_refused(made, bundle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit(seed=1)
    write_bundle("toy", "newer", parts=["logits"])
    for name in ("verdict.json", "report.html"):
        shutil.copy(bundle / f"audits/toy/{name}", f"newer/audits/toy/{name}")
    assert any(fault.startswith("audits/toy/verdict.json: ") for fault in verify_bundle("newer").faults)
    bundles.restated(tmp_path / "newer")
    assert any(fault.startswith("verdict.json: ") for fault in verify_bundle("newer").faults)


@pytest.mark.parametrize("change", bundles.OTHER_RUNS)
def test_page_and_verdict_of_another_run_are_refused_also_with_a_statement_that_fits_them(made, bundle, change):
    change(bundle, made[True] / "bundle")
    bundles.restated(bundle)
    assert verify_bundle(bundle).faults


def test_a_page_of_another_version_is_not_drawn_again_and_that_is_said(bundle, clean_checkout, monkeypatch):
    bundles.page_with_other_words(bundle, None)
    bundles.restated(bundle)
    monkeypatch.setitem(clean_checkout, "rev-parse", "d" * 40)
    checkout.software.cache_clear()
    found = verify_bundle(bundle)
    monkeypatch.undo()
    checkout.software.cache_clear()
    assert found.faults == [] and "d" * 40 in found.unchecked["page"]


def test_a_refusal_by_another_version_says_so(bundle, clean_checkout, monkeypatch):
    bundles.edited_choices(bundle, Random(0))
    bundles.restated(bundle)
    found = verify_bundle(bundle)
    assert found.faults and "version" not in found.unchecked
    monkeypatch.setitem(clean_checkout, "rev-parse", "d" * 40)
    checkout.software.cache_clear()
    found = verify_bundle(bundle)
    monkeypatch.undo()
    checkout.software.cache_clear()
    assert found.faults and "d" * 40 in found.unchecked["version"]


MALFORMED = [
    ("verdict", "rules", None),
    ("verdict", "rules", []),
    ("verdict", "time", "today"),
    ("verdict", "software", []),
    ("models", "warned", None),
    ("models", "included", []),
]
"""Files of an audit, a key, and a value of it that no version writes."""


@pytest.mark.parametrize(("name", "key", "value"), MALFORMED)
def test_malformed_files_are_named_and_no_error_of_python_is(bundle, name, key, value):
    path = bundle / f"audits/toy/{name}.json"
    write_json(path, read_json(path) | {key: value})
    bundles.restated(bundle)
    faults = verify_bundle(bundle).faults
    assert any(f"{name}.json: " in fault for fault in faults)
    assert not [fault for fault in faults if "cannot be computed" in fault]


def test_a_verdict_with_entries_of_another_version_is_refused_with_that_version(bundle, clean_checkout, monkeypatch):
    path = bundle / "audits/toy/verdict.json"
    verdict = read_json(path)
    del verdict["models"]
    write_json(path, verdict)
    bundles.restated(bundle)
    monkeypatch.setitem(clean_checkout, "rev-parse", "d" * 40)
    checkout.software.cache_clear()
    found = verify_bundle(bundle)
    monkeypatch.undo()
    checkout.software.cache_clear()
    assert found.faults and "d" * 40 in found.unchecked["version"]


def test_only_a_signature_shows_a_time_that_all_files_agree_on(bundle):
    """What the documents say that no check of a folder can find."""
    page, verdict = (bundle / f"audits/toy/{name}" for name in ("report.html", "verdict.json"))
    said = time_of(read_verdict(verdict))
    bundles.verdict_of_another_time(bundle, None)
    page.write_text(page.read_text().replace(said, time_of(read_verdict(verdict))))
    assert verify_bundle(bundle).faults
    bundles.restated(bundle)
    assert verify_bundle(bundle).faults == []


def test_without_logits_tables_and_verdict_are_computed_again(made, tmp_path, monkeypatch):
    monkeypatch.chdir(made[True])
    folder = tmp_path / "bundle"
    write_bundle("toy", folder)
    found = verify_bundle(folder)
    assert found.faults == []
    assert {"selection", "tables", "verdict"} <= set(found.checked) and "logits" in found.unchecked
    bundles.edited_verdict(folder, Random(0))
    bundles.restated(folder)
    assert verify_bundle(folder).faults


@pytest.mark.parametrize(
    "hostile",
    [
        lambda folder: (folder / "more").symlink_to("/etc/passwd"),
        lambda folder: (folder / "samples").symlink_to("/"),
        lambda folder: (folder / STATEMENT).unlink(),
        lambda folder: (folder / STATEMENT).write_text('{"subject": [], "subject": []}'),
        lambda folder: (folder / STATEMENT).write_text("[" * 100_000),
        lambda folder: (folder / STATEMENT).write_text('{"subject": [{"name": "../../secret", "digest": {}}]}'),
        lambda folder: (folder / STATEMENT).write_text("[NaN]"),
        lambda folder: (folder / "approved").mkdir(),
        lambda folder: nested(folder, depth=30),
    ],
)
def test_a_hostile_folder_is_refused(bundle, hostile):
    hostile(bundle)
    assert verify_bundle(bundle).faults


def nested(folder, *, depth):
    """Folders in folders, with a name that is longer than any path that a system opens."""
    with contextlib.chdir(folder):
        for _ in range(depth):
            Path("n" * 200).mkdir()
            os.chdir("n" * 200)
        Path("file").touch()


@pytest.mark.parametrize(
    ("bundle", "forge", "file"),
    [
        (False, bundles.key_that_stands_twice, "verdict.json"),
        (False, bundles.note_on_a_verdict, "verdict.json"),
        (False, bundles.more_scores, "scores/toy.parquet"),
        (False, bundles.scores_of_another_model, "scores/toy.parquet"),
        (False, bundles.certificate_of_a_software, "verdict.json"),
        (False, bundles.pixels_without_proofs, "proofs/images.npz"),
        (False, bundles.page_among_the_figures, "figures/PASS.html"),
        (True, bundles.samples_of("settings", "{}"), "samples/minimal-l2/toy/none/good.parquet"),
        (True, bundles.samples_of("dataset_digest", "0" * 64), "samples/minimal-l2/toy/none/good.parquet"),
        (True, bundles.samples_of("checkpoint_sha256", "0" * 64), "samples/minimal-l2/toy/none/good.parquet"),
        (True, bundles.sources_of_two_checkpoints, "values of two checkpoints of none/good"),
    ],
    indirect=["bundle"],
)
def test_a_forgery_that_no_result_shows_is_refused(bundle, forge, file):
    forge(bundle)
    bundles.restated(bundle)
    assert any(file in fault for fault in verify_bundle(bundle).faults)


def test_given_logits_that_are_not_handed_on_need_not_lie_anywhere(made, tmp_path, monkeypatch):
    monkeypatch.chdir(made[False])
    write_bundle("toy", tmp_path / "bundle")
    monkeypatch.chdir(tmp_path)
    assert verify_bundle("bundle").faults == []


def test_a_configuration_that_names_other_files_opens_none(bundle):
    path = bundle / "audits/toy/config.yaml"
    text = "".join(line for line in path.read_text().splitlines(True) if "SHA-256" not in line)
    write_checksummed(path, text.replace("models: [toy/none/good", "models: [/etc/passwd.npy, toy/none/good"))
    bundles.restated(bundle)
    assert any("config.yaml" in fault for fault in verify_bundle(bundle).faults)


def test_corrupted_copies_that_lie_elsewhere_are_not_opened(made, tmp_path):
    bundle = shutil.copytree(made[True] / "bundle", tmp_path / "bundle")
    bundles.corrupted_copies_elsewhere(bundle, tmp_path / "nowhere")
    bundles.restated(bundle)
    assert verify_bundle(bundle, required=["images"]).faults == []


@pytest.mark.parametrize("source", ["image_csv", "labels"])
def test_a_table_of_images_or_labels_is_no_file_that_holds_them(source):
    settings = dataset_settings({"source": source}, "given/images.csv", ["cat", "dog"])
    dataset = SimpleNamespace(name="toy", images="given/images.csv", settings=settings)
    assert image_file(SimpleNamespace(dataset=dataset)) == {}


# ---- writing and signing ----


def test_a_bundle_is_whole_or_not_there(made, tmp_path, monkeypatch):
    shutil.copytree(made[False], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    with pytest.raises(InputError, match="bundle: exists"):
        write_bundle("toy", "bundle")
    bundles.digit_in_a_csv(tmp_path / "copy/results", Random(0))
    with pytest.raises(InputError, match="differs from its Parquet file"):
        write_bundle("toy", "other")
    assert not [path for path in (tmp_path / "copy").iterdir() if "other" in path.name]


def test_a_full_disk_is_that_of_the_bundle_not_of_what_is_copied(made, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(source), None, str(target))

    monkeypatch.chdir(made[False])
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_bundle("toy", tmp_path / "other")
    assert raised.value.filename == str(tmp_path / "other") and not list(tmp_path.iterdir())


def test_a_folder_of_images_may_be_called_like_a_file(made, tmp_path, monkeypatch):
    shutil.copytree(made[True], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    Path("data/v1.0").mkdir(parents=True)
    monkeypatch.setattr(PlannedDataset, "images", "data/v1.0")
    messages = write_bundle("toy", "other", parts=["images"])
    assert len(messages) == 1 and messages[0].startswith("images: the audit has none")


def test_the_statement_is_one_of_in_toto_and_names_nothing_of_this_machine(made, bundle):
    text = (bundle / STATEMENT).read_text()
    statement = json.loads(text)
    assert (statement["_type"], statement["predicateType"]) == (TYPE, PREDICATE_TYPE)
    names = {item["name"] for item in statement["subject"]}
    files = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert names == (files - {STATEMENT}) | {"model:none/good", "model:none/bad"}
    verdict = read_json(bundle / "audits/toy/verdict.json")
    assert statement["predicate"]["verdict"] == verdict
    assert statement["predicate"]["question"]["rules"][0]["words"] == verdict["rules"][0]["words"]
    assert str(made[False]) not in text


def test_networks_of_several_files_are_handed_on_and_checked_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished_audit(attacked=True, several_files=True)
    write_bundle("toy", "bundle", parts=["networks"])
    names = [f"checkpoints/toy/none/{name}" for name in ("good/good.onnx", "good/good.onnx.data", "bad/bad.onnx.data")]
    assert all((tmp_path / "bundle" / name).is_file() for name in names)
    assert verify_bundle("bundle", required=["networks"]).faults == []
    for name in names:
        whole = (tmp_path / "bundle" / name).read_bytes()
        (tmp_path / "bundle" / name).write_bytes(b"other")
        bundles.restated(tmp_path / "bundle")
        assert any(name in fault for fault in verify_bundle("bundle").faults)
        (tmp_path / "bundle" / name).write_bytes(whole)
    (tmp_path / "bundle" / names[1]).unlink()
    bundles.restated(tmp_path / "bundle")
    assert any(names[1] in fault and "missing" in fault for fault in verify_bundle("bundle").faults)


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    (tmp_path / "signers").write_text(f"me@example.org {path.with_suffix('.pub').read_text()}")
    return path


def test_a_signature_is_that_of_whom_one_trusts_on_this_statement(bundle, key, tmp_path):
    trusted = {"allowed_signers": tmp_path / "signers", "identity": "me@example.org"}
    assert verify_bundle(bundle, **trusted).faults, "it is not signed"
    sign(bundle / STATEMENT, key)
    found = verify_bundle(bundle, required=["signature"], **trusted)
    assert found.faults == [] and "signature" in found.checked
    assert "signature" in verify_bundle(bundle).unchecked, "nobody was named"
    assert verify_bundle(bundle, **trusted | {"identity": "you@example.org"}).faults
    (bundle / STATEMENT).write_text(json.dumps(json.loads((bundle / STATEMENT).read_text())))
    assert verify_bundle(bundle, **trusted).faults, "another text of the same content"
    assert verify_bundle(bundle).faults
