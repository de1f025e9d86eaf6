import json
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from fetch_dataset import fetch_dataset
from gfscore.audit.values import one_row_per_sample, with_predictions
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.measures import KINDS, complete, job, kind_of
from gfscore.measures.job import MeasuringJob, measure_in_batches
from gfscore.networks import passes
from gfscore.networks.adjusted import open_model
from gfscore.networks.architectures import build_network
from gfscore.networks.classifier import from_network
from gfscore.networks.trained import save_classifier
from gfscore.tables.parquet_tables import read_identity, read_table, write_table
from gfscore.workflow.catalogue import CATALOGUE
from measure_model import measure_model

NAMES = [str(digit) for digit in range(10)]
MODEL = {"dataset": "digits", "threat": "none", "model": "tiny"}
SETTINGS = {"kind": "targeted", "subset": {"samples": 25, "seed": 3}, "seed": 5}
TARGETED = CATALOGUE["samples of kind targeted"]
HOW = {"batch_size": 10, "version": "1"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    digits = {"source": "digits", "split": "test", "test_share": 0.5, "seed": 0, "subset": None}
    fetch_dataset(digits, NAMES, folder / "digits.json", folder / "digits.parquet", dataset="digits")
    network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=10, width=2, pool=4)
    sha256 = save_classifier(folder / "tiny.safetensors", network, metadata=MODEL)
    manifest = {**MODEL, "sha256": sha256, "architecture": "small_convnet", "settings": {}}
    write_json(folder / "tiny.json", manifest)
    return {
        "dataset": folder / "digits.json",
        "model": folder / "tiny.json",
        "checkpoint": folder / "tiny.safetensors",
    }


class Recorder:
    """A measure of two targets per sample that records what it was given, and may fail once."""

    def __init__(self, *, fail_at=None, too_many=None):
        self.seeds, self.sizes, self.failed, self.fail_at, self.too_many = [], [], [], fail_at, too_many

    def __call__(self, classifier, images, labels, *, seeds):
        assert classifier.classes == 10
        assert not any(weight.requires_grad for weight in classifier.network.parameters())
        if self.too_many and len(images) > self.too_many:
            self.failed.append(len(images))
            raise torch.OutOfMemoryError("not enough memory")
        if len(self.sizes) == self.fail_at:
            raise KeyboardInterrupt
        self.seeds.append(seeds)
        self.sizes.append(len(images))
        rows = np.repeat(np.arange(len(images)), 2)
        values = np.tile([0.0, 1.0], len(images))
        draws = np.concatenate([np.random.default_rng(seed).random(2) for seed in seeds])
        return {
            "row": rows,
            "prediction": labels[rows],
            "value": values,
            "censored": np.zeros(len(rows), dtype=bool),
            "target": np.tile([1, 2], len(images)),
            "distance": draws,
        }


def job_in(folder, files, **changes):
    outputs = {"output": folder / "samples.parquet", "progress": folder / "progress"}
    given = files | outputs | {"measure": "targeted-8", "settings": SETTINGS} | HOW | changes
    return MeasuringJob(**given | {"settings": kind_of(given["settings"]).parse(given["settings"])})


def run(files, folder, measure_batch, *, how=HOW, settings=SETTINGS):
    measure_in_batches(job_in(folder, files, settings=settings, **how), measure_batch, table=TARGETED)
    return read_table(folder / "samples.parquet", TARGETED, expect={"measure": "targeted-8"})


def test_a_subset_is_measured_in_full_batches_with_seeds_of_their_own(files, tmp_path):
    recorder = Recorder()
    frame = run(files, tmp_path, recorder)
    assert recorder.sizes == [10, 10, 5]
    assert len(np.unique(np.concatenate(recorder.seeds))) == 25
    assert len(frame) == 50
    assert frame["sample_id"].nunique() == 25
    assert not (tmp_path / "progress").exists()
    assert json.loads(read_identity(tmp_path / "samples.parquet")["settings"]) == complete(SETTINGS)


def test_a_sample_is_drawn_alike_in_a_subset_and_at_any_batch_size(files, tmp_path):
    few = run(files, tmp_path, Recorder()).set_index(["sample_id", "target"])["distance"]
    whole = SETTINGS | {"subset": None}
    for number, size in enumerate((7, 100)):
        frame = run(files, tmp_path / str(number), Recorder(), how=HOW | {"batch_size": size}, settings=whole)
        drawn = frame.set_index(["sample_id", "target"])["distance"]
        assert len(drawn) > len(few) == 50
        pd.testing.assert_series_equal(drawn.loc[few.index], few)
    frame = run(files, tmp_path, Recorder(), settings=SETTINGS | {"seed": 6})
    assert (frame["distance"] != few.to_numpy()).all()


def test_a_larger_subset_computes_only_the_samples_that_a_smaller_one_has_not(files, tmp_path):
    def of_each_class(number, **changes):
        recorder = Recorder()
        frame = run(
            files, tmp_path, recorder, settings=SETTINGS | {"subset": {"per_class": number, "seed": 1}, **changes}
        )
        return frame, sum(recorder.sizes)

    small, computed = of_each_class(2)
    assert computed == small["sample_id"].nunique() == 20
    large, computed = of_each_class(5)
    assert computed == 30 and large["sample_id"].nunique() == 50
    identity = read_identity(tmp_path / "samples.parquet")
    # In one go, in any batches, the table is the same; so is the one of less again.
    whole = run(
        files, tmp_path / "whole", Recorder(), how=HOW | {"batch_size": 7},
        settings=SETTINGS | {"subset": {"per_class": 5, "seed": 1}},
    )  # fmt: skip
    pd.testing.assert_frame_equal(large, whole)
    assert identity == read_identity(tmp_path / "whole/samples.parquet")
    before = passes.counts()
    again, computed = of_each_class(2)
    assert computed == 0
    pd.testing.assert_frame_equal(again, small)
    # Of the passes of 50 samples those of 20 count, in each job anew.
    assert passes.counts_since(before) == {"forwards": 20, "backwards": 0}
    before = passes.counts()
    of_each_class(5)
    assert passes.counts_since(before) == {"forwards": 50, "backwards": 0}
    # What changes a value is computed anew.
    assert of_each_class(2, seed=6)[1] == 20
    (tmp_path / "progress/kept.parquet").write_bytes(b"PAR1")
    assert of_each_class(2)[1] == 20


def test_several_rows_of_a_sample_count_once_with_their_mean(files, tmp_path):
    run(files, tmp_path, Recorder())
    samples = with_predictions(read_table(tmp_path / "samples.parquet", TARGETED))
    single = one_row_per_sample(samples)
    assert single["value"].tolist() == [0.5] * 25
    assert single["sample_id"].tolist() == samples["sample_id"].drop_duplicates().tolist()
    clean = samples.drop_duplicates("sample_id")
    assert single["correct"].tolist() == (clean["clean_prediction"] == clean["label"]).tolist()


def test_an_interrupted_measure_goes_on_and_gives_the_same_table(files, tmp_path):
    before = passes.counts()
    undisturbed = run(files, tmp_path / "whole", Recorder())
    # The clean prediction of each sample; Recorder itself shows nothing to the classifier.
    assert passes.counts_since(before) == {"forwards": 25, "backwards": 0}
    with pytest.raises(KeyboardInterrupt):
        run(files, tmp_path, Recorder(fail_at=2))
    assert not (tmp_path / "samples.parquet").exists()
    again, before = Recorder(), passes.counts()
    frame = run(files, tmp_path, again)
    assert passes.counts_since(before) == {"forwards": 25, "backwards": 0}, "kept batches must count"
    assert again.sizes == [5], "finished batches must not be computed again"
    pd.testing.assert_frame_equal(frame, undisturbed)


def test_certificates_are_kept_through_an_interruption_and_two_runs_give_the_same_bytes(files, tmp_path):
    # Untrained, the network is right about a tenth of the samples.
    settings = {"kind": "proven", "eps": 0.01, "budget": 500, "subset": {"samples": 120, "seed": 1}, "seed": 5}
    kind, table = KINDS["proven"], CATALOGUE["samples of kind proven"]
    prove = partial(kind.load(), settings=kind.parse(settings))
    batches = []

    def interrupted(*arguments, **keywords):
        if len(batches) == 2:
            raise KeyboardInterrupt
        batches.append(arguments)
        return prove(*arguments, **keywords)

    def run_job(folder, measure_batch):
        measure_in_batches(job_in(folder, files, settings=settings, batch_size=50), measure_batch, table=table)

    run_job(tmp_path / "whole", prove)
    with pytest.raises(KeyboardInterrupt):
        run_job(tmp_path, interrupted)
    run_job(tmp_path, prove)
    path = tmp_path / "samples.parquet"
    assert path.read_bytes() == (tmp_path / "whole/samples.parquet").read_bytes()

    frame = read_table(path, table, evidence=True)
    assert (frame["certificate"].notna() == (frame["status"] == "proven")).all()
    assert frame["certificate"].iloc[:50].notna().any()
    # Those who do not ask for it do not read it.
    assert read_table(path, table).columns.tolist() == table.column_names == frame.columns.tolist()[:-2]


def test_the_passes_of_a_certificate_are_its_draws_and_the_clean_prediction(files, tmp_path):
    smoothing = {"sigma": 0.25, "selection_samples": 10, "estimation_samples": 60, "alpha": 0.01, "batch_size": 50}
    settings = SETTINGS | {"kind": "certified", "smoothing": smoothing | {"sandwich": None}}
    before = passes.counts()
    table = CATALOGUE["samples of kind certified"]
    certified = KINDS["certified"]
    measure_batch = partial(certified.load(), settings=certified.parse(settings))
    measure_in_batches(job_in(tmp_path, files, settings=settings), measure_batch, table=table)
    draws = read_table(tmp_path / "samples.parquet", table)["draws"]
    assert passes.counts_since(before) == {"forwards": 25 + draws.sum(), "backwards": 0}


@pytest.mark.parametrize("change", ["version", "settings", "damage", "uncounted"])
def test_kept_batches_of_something_else_are_not_used(files, tmp_path, change):
    with pytest.raises(KeyboardInterrupt):
        run(files, tmp_path, Recorder(fail_at=2))
    how, settings = HOW, SETTINGS
    if change == "version":
        how = HOW | {"version": "2"}
    elif change == "settings":
        settings = SETTINGS | {"seed": 6}
    elif change == "uncounted":
        part = next((tmp_path / "progress").rglob("000000.parquet"))
        identity = {name: value for name, value in read_identity(part).items() if name != "passes"}
        write_table(part, TARGETED, read_table(part, TARGETED), identity=identity)
    else:
        part = next((tmp_path / "progress").rglob("000000.parquet"))
        part.write_bytes(part.read_bytes()[:100])
    again = Recorder()
    run(files, tmp_path, again, how=how, settings=settings)
    assert again.sizes == ([10, 5] if change in ("damage", "uncounted") else [10, 10, 5])


def test_a_batch_that_does_not_fit_is_halved_and_nothing_is_lost(files, tmp_path):
    recorder = Recorder(too_many=3)
    frame = run(files, tmp_path, recorder)
    assert max(recorder.sizes) == 3
    assert recorder.failed == [10, 5], "later batches do not try again what did not fit"
    seeds = np.concatenate(recorder.seeds)
    assert len(np.unique(seeds)) == len(seeds), "halves must not draw the same numbers"
    whole = run(files, tmp_path / "whole", Recorder())
    assert frame["sample_id"].tolist() == whole["sample_id"].tolist()
    with pytest.raises(torch.OutOfMemoryError):
        run(files, tmp_path / "none", Recorder(too_many=0.5))


def test_a_gpu_too_small_for_one_image_is_named_with_the_remedy(files, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(InputError, match=r"tiny\.safetensors: .*device: cpu"):
        run(files, tmp_path, Recorder(too_many=0.5))


def test_one_image_may_take_what_is_left_of_the_gpu(files, tmp_path, monkeypatch):
    recorder = Recorder(too_many=0.5)

    def lift(subject):
        recorder.too_many = 1
        return True

    monkeypatch.setattr(job.GPU_SHARE, "lift_limit", lift)
    frame = run(files, tmp_path, recorder)
    assert max(recorder.sizes) == 1
    assert frame["sample_id"].tolist() == run(files, tmp_path / "whole", Recorder())["sample_id"].tolist()


def test_what_did_not_fit_is_gone_when_its_halves_are_measured(files, tmp_path):
    recorder, failed = Recorder(), []

    def measure_batch(classifier, images, labels, **how):
        filled = torch.zeros(len(images))
        # Objects that refer to each other would wait for the garbage collector: there are none.
        assert all(reference() is None for reference in failed)
        if len(images) > 3:
            failed.append(weakref.ref(filled))
            raise torch.OutOfMemoryError("not enough memory")
        return recorder(classifier, images, labels, **how)

    run(files, tmp_path, measure_batch)
    assert failed
    assert max(recorder.sizes) == 3


def test_too_large_a_subset_names_the_measure(files, tmp_path):
    settings = SETTINGS | {"subset": {"samples": 5000, "seed": 0}}
    with pytest.raises(InputError, match="measures: targeted-8: subset: samples 5000"):
        run(files, tmp_path, Recorder(), settings=settings)


def test_a_subset_of_one_class_is_refused_before_any_image_is_measured(files, tmp_path):
    recorder = Recorder()
    settings = SETTINGS | {"subset": {"every": 5000}}
    with pytest.raises(
        InputError, match=r"measures: targeted-8: subset: all of its samples are of one class.* per_class"
    ):
        run(files, tmp_path, recorder, settings=settings)
    assert not recorder.sizes


@pytest.mark.parametrize(("search", "stated"), [("auto", None), ("float32", None), ("bfloat16", "bfloat16")])
def test_the_identity_states_the_arithmetic_of_the_search_where_it_is_not_float32(search, stated, files, tmp_path):
    attack = {"name": "pgd", "steps": 2, "step_size": None, "restarts": 1}
    subset = {"samples": 10, "seed": 0}
    settings = {"kind": "adversarial", "norm": "linf", "eps": 0.1, "attacks": [attack], "subset": subset, "seed": 0}
    path = tmp_path / "samples.parquet"
    measure_model(job_in(tmp_path, files, settings=settings, measure="adversarial", device="cpu"), search=search)
    assert read_identity(path).get("search") == stated
    assert json.loads(read_identity(path)["settings"]) == complete(settings)


STEPS = {
    "gradients alone": ({"kind": "adversarial", "eps": 0.1, "attacks": [{"name": "pgd", "steps": 2}]}, True),
    "gradients, and queries": ({"kind": "adversarial", "eps": 0.1}, False),
    "distances": ({"kind": "minimal"}, True),
    "targets": ({"kind": "targeted", "eps": 0.1}, True),
    "a constant": ({"kind": "adversarial", "eps": 0.1, "attacks": [{"name": "pgd", "steps": 2}]}, False),
}
"""Measures of a network of steps, and whether it is refused."""


@pytest.mark.parametrize("name", STEPS)
def test_a_network_without_gradients_does_not_look_robust(name, files, tmp_path, monkeypatch):
    settings, refused = STEPS[name]

    class Steps(torch.nn.Module):
        def forward(self, images):
            logits = torch.round(images).flatten(1)[:, 10:20] + 0 * images.sum()
            return 0 * logits if name == "a constant" else logits

    classifier = from_network(Steps(), architecture="steps", image_shape=(1, 8, 8), classes=10)
    manifest = read_json(files["model"])
    monkeypatch.setattr(job, "open_model", lambda *_, **__: (classifier, manifest))
    measured = job_in(tmp_path, files, settings={**settings, "subset": {"samples": 10, "seed": 0}}, device="cpu")
    if not refused:
        measure_model(measured)
        return
    with pytest.raises(InputError, match=r"gradients are 0 on all of 8 images.*add an attack without gradients"):
        measure_model(measured)
    assert not (tmp_path / "samples.parquet").exists()


def test_tf32_on_the_processor_is_refused_before_a_pass(files, tmp_path):
    settings = {"kind": "targeted", "norm": "linf", "eps": 0.1, "subset": None, "seed": 0}
    with pytest.raises(InputError, match="search: auto"):
        measure_model(job_in(tmp_path, files, settings=settings, device="cpu"), search="tf32")
    assert not (tmp_path / "samples.parquet").exists()


def test_a_network_without_bounds_is_refused_before_any_image_is_attacked(files, tmp_path, monkeypatch):
    """The network has an operator without bounds; the error names its file and the operator."""

    def open_with_gelu(*arguments, **keywords):
        network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.GELU(), torch.nn.Linear(64, 10))
        classifier, manifest = open_model(*arguments, **keywords)
        return replace(classifier, network=network), manifest

    monkeypatch.setattr(job, "open_model", open_with_gelu)
    monkeypatch.setattr("gfscore.measures.proven.batch.measure_batch", never_called)
    settings = KINDS["proven"].settings().model_dump(mode="json")
    with pytest.raises(InputError, match=r"tiny\.safetensors: .*gelu"):
        measure_model(job_in(tmp_path, files, measure="proven-linf", settings=settings))
    assert not list(tmp_path.rglob("*.parquet"))


def never_called(*_arguments, **_keywords):
    raise AssertionError("a batch was measured")


def test_a_kind_whose_samples_take_seconds_is_kept_in_smaller_batches(files, tmp_path, capsys):
    settings = {"kind": "proven", "eps": 0.01, "budget": 0, "subset": {"samples": 100}}
    measure_model(job_in(tmp_path, files, settings=settings, batch_size=256))
    parts = -(-100 // KINDS["proven"].most_at_once)
    assert f"part {parts} of {parts}: done" in capsys.readouterr().out
