"""Devices of jobs: the passes that a run plans, where they run, and what is refused before anything runs."""

import json
from functools import partial

import pytest

from gfscore.core.settings import Subset
from gfscore.measures import named_measures
from gfscore.networks.device_choice import Network
from gfscore.networks.installed_gpus import Gpu, InstalledGpus
from gfscore.workflow import job_devices
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.job_devices import (
    JobDevice,
    Planned,
    RecordedDataset,
    choose,
    gpu_mistakes,
    planned_logits,
    planned_measure,
    planned_projection,
    samples_of,
)
from gfscore.workflow.plan import Run
from helpers.configurations import shipped_configuration

H100 = InstalledGpus((Gpu("H100", 81_559, "580.95"),))
TWO = InstalledGpus((Gpu("H100", 81_559, "580.95"), Gpu("small", 8_000, "580.95")))
SMALL = InstalledGpus((Gpu("smaller", 900), Gpu("small", 1_000)))
NONE = InstalledGpus()
OLD = InstalledGpus(reason="driver 470 is too old; renew it", driver_too_old=True)
DIGITS = Network(4 * 47_530, (1, 8, 8))
WIDE_RESNET = Network(4 * 36_500_000, (3, 32, 32))


@pytest.fixture(scope="module")
def demo():
    return Run(shipped_configuration())


def test_every_job_of_the_demo_runs_on_the_cpu(demo):
    """Its networks are digits: a GPU would save less than it takes to start."""
    planned = [planned_logits(898)]
    planned += [planned_measure(measure, 898, 10, 256) for measure in demo.measures.values()]
    planned += [planned_projection(mapper.settings, 898, 10) for mapper in demo.mappers.values()]
    assert len(planned) > 5
    assert {choose(DIGITS, work, device="auto", installed=H100) for work in planned} == {JobDevice("cpu")}


def measure(**settings):
    return planned_measure(named_measures({"m": settings})["m"], 100, 10, 256)


@pytest.mark.parametrize(
    ("settings", "per_sample"),
    [
        ({"kind": "adversarial", "attacks": [{"name": "pgd", "steps": 20, "restarts": 2}]}, 2 + 3 * 20 * 2),
        ({"kind": "adversarial", "attacks": [{"name": "square", "queries": 70}]}, 2 + 70),
        ({"kind": "adversarial", "attacks": [{"name": "apgd-targeted", "steps": 10, "targets": 20}]}, 2 + 3 * 10 * 9),
        ({"kind": "targeted", "steps": 5, "restarts": 2}, 1 + 3 * 9 * 5 * 2),
        ({"kind": "minimal", "attacks": [{"name": "fmn", "steps": 40}], "bisection_steps": 12}, 1 + 120 + 15),
        ({"kind": "corruption", "corruptions": ["fog"], "severities": [1, 3]}, 2 + 2),
        ({"kind": "probabilistic", "budget": 500}, 1 + 500),
        ({"kind": "certified", "smoothing": {"selection_samples": 10, "estimation_samples": 90}}, 1 + 100),
    ],
)
def test_passes_follow_from_the_settings_of_a_measure(settings, per_sample):
    assert measure(**settings).forwards == 100 * per_sample


def test_copies_at_a_time_count_where_they_are_more_than_images():
    assert measure(kind="adversarial").batch_size == 256
    assert measure(kind="probabilistic", batch_size=2048).batch_size == 2048
    assert measure(kind="probabilistic", batch_size=64).batch_size == 256
    assert measure(kind="certified", smoothing={"batch_size": 1000}).batch_size == 1000
    # Nine targets of each image.
    assert measure(kind="targeted").batch_size == 9 * 256


@pytest.mark.parametrize(
    ("subset", "samples"),
    [(None, 100), ({"samples": 30}, 30), ({"samples": 300}, 100), ({"per_class": 4}, 40), ({"every": 3}, 34)],
)
def test_samples_of_a_subset_are_counted(subset, samples):
    assert samples_of(subset and Subset(**subset), 100, 10) == samples


def test_a_run_says_each_kind_of_gpu():
    assert job_devices.words_of(TWO, "cpu").startswith("GPU: H100 (81,559 MiB) and small (8,000 MiB): ")
    assert job_devices.words_of(InstalledGpus(2 * H100.usable), "auto").startswith("GPU: 2 x H100 (81,559 MiB): ")
    assert job_devices.words_of(InstalledGpus((Gpu("slice", None),)), "cuda").startswith("GPU: slice: ")


LARGE = Planned(100_000, 256, gradients=True)


@pytest.mark.parametrize(
    ("device", "installed", "expected"),
    [
        ("auto", H100, JobDevice("auto", 15)), ("cuda", H100, JobDevice("cuda", 15)), ("cpu", H100, JobDevice("cpu")),
        # The part must fit whichever GPU is free.
        ("auto", TWO, JobDevice("auto", 100)),
        # Not what torch finds by itself: no job would know of the others on it.
        ("auto", NONE, JobDevice("cpu")), ("cuda", NONE, JobDevice("cuda")),
        ("auto", InstalledGpus((Gpu("unknown", None),)), JobDevice("auto", 100)),
        # 1.2 GB for one image.
        ("auto", SMALL, JobDevice("cpu")), ("cuda", SMALL, JobDevice("cuda", 100)),
    ],
)  # fmt: skip
def test_the_setting_decides_and_auto_leaves_it_to_the_rule(device, installed, expected):
    chosen = choose(WIDE_RESNET, LARGE, device=device, installed=installed)
    assert chosen.device == expected.device
    assert chosen.gpu_percent == pytest.approx(expected.gpu_percent, abs=5)


def test_cuda_is_used_for_small_networks_too_where_it_is_asked_for():
    assert choose(DIGITS, planned_logits(10), device="cuda", installed=H100) == JobDevice("cuda", 1)


def test_what_is_not_made_yet_is_named_as_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        RecordedDataset.read(str(tmp_path / "dataset.json"))
    with pytest.raises(FileNotFoundError):
        job_devices.recorded_size(str(tmp_path / "model.json"), None)


def test_numbers_are_read_from_the_manifests(tmp_path):
    dataset = {"samples": 5, "classes": ["a", "b"], "image_shape": [3, 8, 8]}
    (tmp_path / "dataset.json").write_text(json.dumps(dataset))
    assert RecordedDataset.read(str(tmp_path / "dataset.json")) == RecordedDataset(5, 2, (3, 8, 8))
    (tmp_path / "weights").write_bytes(bytes(12))
    (tmp_path / "model.json").write_text(json.dumps({"path": str(tmp_path / "weights")}))
    assert job_devices.recorded_size(str(tmp_path / "model.json"), None) == 12
    assert job_devices.recorded_size(str(tmp_path / "model.json"), str(tmp_path / "weights")) == 12


@pytest.mark.parametrize(
    ("entry", "cores"),
    [
        ({"kind": "proven", "subset": {"samples": 64}}, 1),
        ({"kind": "proven", "subset": {"samples": 65}}, 2),
        ({"kind": "proven"}, 4),
        ({"kind": "adversarial"}, 1),
    ],
)
def test_a_kind_that_works_on_several_samples_at_once_gets_a_core_for_each_batch(entry, cores, tmp_path):
    (tmp_path / "dataset.json").write_text(
        json.dumps({"samples": 898, "classes": ["a", "b"], "image_shape": [1, 8, 8]})
    )
    measure = named_measures({"m": entry})["m"]
    assert job_devices.useful_cores(measure, str(tmp_path / "dataset.json")) == cores


# ---- refusals ----


@pytest.fixture
def asking(tmp_path, monkeypatch):
    """Function: the demo's configuration with some values replaced, in an empty folder."""
    from conftest import ROOT

    monkeypatch.chdir(tmp_path)
    return partial(_configured, ROOT / "config.yaml")


def _configured(path, values):
    return Run(resolved_configuration([path], values).config)


def test_without_a_gpu_nothing_is_refused_that_does_not_ask_for_one(asking):
    assert gpu_mistakes(asking({}), NONE) == []
    assert gpu_mistakes(asking({"inference": {"device": "cpu"}}), OLD) == []


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"inference": {"device": "cuda"}}, "inference"),
        ({"models": {"digits": {"none": {"ERM": {"training": {"method": "ERM", "device": "cuda"}}}}}}, "none/ERM"),
        ({"mappers": {"digits-vae": {"device": "cuda"}}}, "digits-vae"),
    ],
)
def test_what_asks_for_cuda_is_refused_without_one_and_named(asking, values, named):
    run = asking(values)
    (mistake,) = gpu_mistakes(run, NONE)
    assert named in mistake and "device" in mistake
    assert gpu_mistakes(run, H100) == []


def test_a_training_that_is_done_asks_for_nothing(asking, tmp_path):
    run = asking({"models": {"digits": {"none": {"ERM": {"training": {"method": "ERM", "device": "cuda"}}}}}})
    (tmp_path / "results/trained/digits/none").mkdir(parents=True)
    (tmp_path / "results/trained/digits/none/ERM.json").write_text("{}")
    assert gpu_mistakes(run, NONE) == []


def test_an_old_driver_stops_a_run_that_would_use_the_gpu(asking):
    assert gpu_mistakes(asking({}), OLD) == [OLD.reason]
