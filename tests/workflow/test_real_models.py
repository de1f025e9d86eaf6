"""Real models and data through the whole workflow: logits, certified radii, ImageNet images, RobustBench."""

import json
import os

import numpy as np
import pytest
import yaml

from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers.configurations import gate_rule
from helpers.real_audits import ARCHITECTURES, torch_entry

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(80)]

CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
UNPUBLISHED = {"published_clean_accuracy": None, "published_robust_accuracy": None}
ALL_THREE = ("--configfile", "real.yaml", "--config", "run=[real-logits,real-radii,real-imagenet]")
ALL_THREE += ("--omit-from", "plot_figures")
SHARED = {"label_error_rate": None, "subset": None, "digest": None, "attributes": None}


def audit(dataset, models, measures, gate):
    rule = gate_rule(measures[-1], at_least=gate)
    return {
        "title": dataset,
        "dataset": dataset,
        "models": models,
        "measures": measures,
        "calibration": None,
        "groups": None,
        "projection": None,
        "gate": [rule],
    }


def real_config(data):
    """Entries for everything in the data pack, laid over config.yaml."""
    facts = json.loads((data / "cifar10/models/models.json").read_text())
    logits = {
        path.stem: {
            "source": "logits",
            "path": str(path),
            "allow_probabilities": False,
            **UNPUBLISHED,
            "clean_accuracy_tolerance": 0.005,
        }
        for path in sorted((data / "cifar10/logits").glob("*.npz"))
    }
    radii = {
        path.name.removesuffix(".tsv.gz"): {"source": "samples", "path": str(path), **UNPUBLISHED}
        for path in sorted((data / "cifar10/certified_radii").glob("*.tsv.gz"))
    }
    squeezenet = torch_entry("cnn_a_adv", facts["cnn_a_adv"], data) | {
        "path": str(data / "imagenet/models/squeezenet_v1.0.pt"),
        "sha256": None,
        "architecture": "architectures.squeezenet:SqueezeNet",
        "arguments": {},
        "image_shape": [3, 227, 227],
        "channel_order": "bgr",
        "value_range": 255,
        "mean": [104, 117, 123],
        "std": None,
        **UNPUBLISHED,
        "clean_accuracy_tolerance": 0.02,
    }
    some_labels = next(iter(logits.values()))["path"]
    return {
        "datasets": {
            "cifar10-200": {
                "source": "npz", "path": str(data / "cifar10/test_lossless_1017.npz"), "value_range": 255, "channels": "first",
                "classes": CIFAR10, "models_of": "cifar10", "published_accuracy": "subset", **SHARED,
                "subset": {"samples": 200, "seed": 0},
            },
            "cifar10-labels": {"source": "labels", "path": some_labels, "classes": CIFAR10, "models_of": "logits", "published_accuracy": None, **SHARED},
            "cifar10-smoothed": {"source": "labels", "path": some_labels, "classes": CIFAR10, "models_of": "radii", "published_accuracy": None, **SHARED},
            "imagenet-1000": {
                "source": "image_folder", "path": str(data / "imagenet/val"), "folders": None, "list": None,
                "preprocessing": {"method": "center_crop", "resize": 256, "size": 227, "interpolation": "bilinear"},
                "classes": None, "models_of": "squeezenets", "published_accuracy": None, **SHARED,
            },
        },
        "models": {
            "logits": {"none": logits},
            "radii": {"L2": radii},
            "squeezenets": {"none": {"SqueezeNet": squeezenet}},
        },
        "measures": {"certified": {"kind": "certified", "largest_radius": 4.0}},
        "audits": {
            "real-logits": audit("cifar10-labels", ["logits/none/*"], ["clean", "great-softmax"], 0.9),
            "real-radii": audit("cifar10-smoothed", ["radii/L2/*"], ["clean", "certified"], 0.01),
            "real-imagenet": audit("imagenet-1000", ["squeezenets/none/SqueezeNet"], ["clean", "great-softmax"], 0.0),
            "robustbench": audit("cifar10-200", ["cifar10/Linf/Wong2020Fast"], ["clean"], 0.5),
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def real(fresh_copy, real_data):
    """A copy of the repository with the data pack configured and three audits of it made, without figures."""
    repository = fresh_copy()
    os.environ["GFSCORE_ARCHITECTURES"] = str(ARCHITECTURES)
    # SqueezeNet has no digest in config, and a digest cannot be recorded beside a read-only file.
    config = real_config(real_data)
    copy = repository.path / "squeezenet.pt"
    copy.write_bytes((real_data / "imagenet/models/squeezenet_v1.0.pt").read_bytes())
    config["models"]["squeezenets"]["none"]["SqueezeNet"]["path"] = str(copy)
    (repository.path / "real.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    repository.snakemake(*ALL_THREE)
    yield repository
    del os.environ["GFSCORE_ARCHITECTURES"]


def results(repository, name, table):
    return read_table(repository.path / f"results/audits/{name}/{table}.parquet", CATALOGUE[table])


def test_the_eight_logits_files_need_no_checkpoint_and_show_cat_as_the_weakest_class(real):
    summary = results(real, "real-logits", "model_summary")
    great = summary[summary["measure"] == "great-softmax"].set_index("model")
    assert len(great) == 8
    assert set(great["wcr_class"]) == {"cat"}
    assert 100 * great.loc["wrn_28_10", "accuracy"] == pytest.approx(96.24)
    assert json.loads(real.read("results/audits/real-logits/verdict.json"))["verdict"] == "PASS"
    assert not list((real.path / "results/checkpoints").glob("logits/**/*.json"))


def test_certified_radii_get_class_tables_and_disparity(real):
    summary = results(real, "real-radii", "model_summary")
    radius = summary[summary["measure"] == "certified"].set_index("model")
    assert radius.loc["cohen_resnet110_sigma_0.25", "value"] == pytest.approx(0.424024, abs=1e-6)
    assert radius.loc["salman_selftrained_resnet110_sigma_1.00", "value"] == pytest.approx(0.783537, abs=1e-6)
    assert (radius["rdi"] > 0.1).all()
    scores = results(real, "real-radii", "class_scores")
    certified = scores[scores["measure"] == "certified"]
    assert (certified["low"] <= certified["value"]).all()
    assert set(certified["n"]) == {1000}


def test_a_thousand_imagenet_classes_go_through_the_image_folder(real):
    scores = results(real, "real-imagenet", "class_scores")
    clean = scores[scores["measure"] == "clean"]
    assert len(clean) == 1000
    assert clean["class_name"].iloc[0] == "n01440764"
    # Stated for these images: 62.5%.
    assert clean["value"].mean() == pytest.approx(0.625, abs=0.02)


def test_a_robustbench_model_loads_offline_and_the_accuracy_gate_refuses_random_weights(real):
    import torch

    from gfscore.networks.robustbench_models import define

    torch.manual_seed(0)
    path = real.path / "checkpoints/cifar10/Linf/Wong2020Fast.pt"
    path.parent.mkdir(parents=True)
    torch.save(define(dataset="cifar10", threat="Linf", model="Wong2020Fast").state_dict(), path)
    done = real.snakemake("--configfile", "real.yaml", "--config", "run=[robustbench]", check=False)
    assert done.returncode != 0
    assert "on 200 samples" in done.text
    assert "published 83.34%" in done.text
    assert "Traceback" not in done.text
    logits = read_logits_of(real, "cifar10-200/Linf/Wong2020Fast")
    assert logits.shape == (200, 10)
    assert np.isfinite(logits).all()


def read_logits_of(repository, name):
    from gfscore.tables.parquet_tables import read_logits

    return read_logits(repository.path / f"results/logits/{name}.parquet")[2]


def test_a_measure_that_a_source_cannot_serve_is_refused_before_any_job(real):
    config = yaml.safe_load((real.path / "real.yaml").read_text())
    config["audits"]["real-radii"]["measures"] = ["clean", "great-softmax"]
    config["audits"]["real-radii"]["gate"][0]["measure"] = "clean"
    (real.path / "wrong.yaml").write_text(yaml.safe_dump(config))
    done = real.snakemake("--dry-run", "--configfile", "wrong.yaml", check=False)
    assert done.returncode != 0
    assert "great-softmax" in done.text and "supports clean" in done.text
