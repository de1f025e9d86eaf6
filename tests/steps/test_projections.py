"""Projections, from images to tables, figures and the page."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from fetch_dataset import fetch_dataset
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.projections.summaries import projection_tables
from gfscore.audit.projections.tasks import Task, differences_between_groups, read_projections
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.core.identity import ModelName
from gfscore.core.numbers import number, percent
from gfscore.images.datasets import load_all
from gfscore.images.manifests import open_described
from gfscore.measures.job import MeasuringJob
from gfscore.networks.architectures import build_network
from gfscore.networks.trained import save_classifier
from gfscore.projection.boundaries import MeasuredSearch
from gfscore.projection.mappers.pictures import read_pictures
from gfscore.show.audit_charts import drawing_of
from gfscore.show.charts import CHARTS
from gfscore.tables.parquet_tables import read_identity, read_table, typed_frame, write_attributes
from gfscore.workflow.catalogue import CATALOGUE
from helpers.configurations import shipped_configuration
from helpers.steps import audit_inputs, models_named, tabulated
from helpers.synthetic_audits import subject_of
from project_attributes import MapperFiles, project_attributes
from train_mapper import train_mapper

CLEAN = pd.DataFrame({"dataset": ["digits"]})
NAMES = [str(digit) for digit in range(10)]
DIGITS = {"source": "digits", "test_share": 0.5, "seed": 0, "subset": {"samples": 300, "seed": 0}}
HOW = {"width": 4, "features": 16, "epochs": 25, "batch_size": 32, "learning_rate": 0.01, "seed": 0, "device": "cpu"}
HOW |= {"pictures": True, "train_on": "train", "evaluate_on": "digits"}
VAE = {"kind": "beta_vae", "latent": 2, "beta": 1, "pixel_sd": 0.03, **HOW}
GAN = {
    "kind": "conditional",
    "attributes": ["side"],
    "latent": 4,
    "adversarial_weight": 0.05,
    "attribute_weight": 0.1,
    **HOW,
}
SEARCH = {"subset": {"samples": 30, "seed": 1}, "steps": 10, "bisections": 5, "sigma": "aggregated", "batch_size": 64}
KINDS = {"attacked": "adversarial", "clean": "clean"}


class Folder:
    """Digits, three classifiers (one of them constant) and both kinds of mapper."""

    def __init__(self, path):
        self.path, self.models = path, []
        for name, split in (("train", "train"), ("digits", "test")):
            made = path / f"{name}.json", path / f"{name}-samples.parquet"
            fetch_dataset(DIGITS | {"split": split}, NAMES, *made, dataset=name)
            ids = self._ids(name)
            sides = np.where(np.arange(len(ids)) % 3 == 0, "left", "right").astype(object)
            sides[:5] = None
            identity = {"dataset": name, "categories": {"side": ["left", "right"]}}
            write_attributes(
                path / f"{name}.parquet", pd.DataFrame({"sample_id": ids, "side": sides}), identity=identity
            )
        for name in ("first", "second", "constant"):
            self._classifier(name)

    def _ids(self, name):
        return open_described(self.path / f"{name}.json")[0].sample_id.astype(object)

    def _classifier(self, name):
        import torch

        network = build_network("small_convnet", in_channels=1, image_size=(8, 8), classes=10, seed=len(name), width=4)
        with torch.no_grad():
            last = network[-1]
            if name == "constant":
                last.weight.zero_()
                last.bias.copy_(torch.arange(10.0))
            else:
                # Untrained logits hardly differ: centred on the images, they spread over the classes.
                images = torch.from_numpy(load_all(open_described(self.path / "digits.json")[0])[0])
                last.bias.sub_(network(images).mean(dim=0))
        (model,) = models_named(name, dataset="digits")
        sha256 = save_classifier(self.path / f"{name}.safetensors", network, metadata=model)
        manifest = {**model, "sha256": sha256, "architecture": "small_convnet", "settings": {}}
        write_json(self.path / f"{name}.json", manifest)
        self.models.append(model)

    def train(self, mapper, settings, *, out=None):
        out = out or self.path
        attributes = settings["kind"] == "conditional"
        files = {"train": self.path / "train.json", "test": self.path / "digits.json"}
        files |= {
            f"{n}_attributes": self.path / f"{d}.parquet" if attributes else None
            for n, d in (("train", "train"), ("test", "digits"))
        }
        ends = {"weights": "safetensors", "manifest": "json", "pictures": "npz"}
        outputs = {name: out / f"{mapper}.{end}" for name, end in ends.items()}
        train_mapper(files, outputs, self.path / "progress", name=mapper, settings=settings, version="1")
        return outputs

    def project(self, mapper, name, *, attributes=None, search=SEARCH, dataset="digits", batch_size=20):
        job = MeasuringJob(
            dataset=self.path / f"{dataset}.json",
            model=self.path / f"{name}.json",
            checkpoint=self.path / f"{name}.safetensors",
            output=self.path / f"{mapper}-{name}.parquet",
            progress=self.path / "searching",
            measure=mapper,
            settings=MeasuredSearch.model_validate(search),
            batch_size=batch_size,
            version="1",
        )
        project_attributes(
            job,
            MapperFiles(self.path / f"{mapper}.safetensors", self.path / f"{mapper}.json", attributes),
        )
        model = {"dataset": dataset, "threat": "none", "model": name}
        expect = {**model, "measure": mapper}
        return read_table(
            self.path / f"{mapper}-{name}.parquet", CATALOGUE["samples of kind projection"], expect=expect
        )

    def inputs(self, measures, frames, **settings):
        inputs = audit_inputs(self.path, self.models, measures, frames, **settings)
        return replace(inputs, dataset=self.path / "digits-samples.parquet")

    def summarise(self, mapper, metrics=None, *, included=None):
        """Tables of the projections of all models; `metrics` are rows of group_metrics."""
        projections, groups = self.projections(self.inputs({}, {}, included=included), mapper), {}
        if metrics:
            frame = typed_frame(CATALOGUE["group_metrics"], metrics)
            groups = {"digits": differences_between_groups(frame, kinds=KINDS)}
        return projection_tables(projections, groups, confidence=0.95)

    def projections(self, inputs, mapper):
        paths = [self.path / f"{mapper}-{model['model']}.parquet" for model in self.models]
        known = {"class_names": NAMES, "listed": inputs.listed, "image_shape": [1, 8, 8]}
        task = Task(models=[ModelName.from_columns(model) for model in self.models], **known)
        return read_projections(inputs, paths, [read_json(self.path / f"{mapper}.json")], [task])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = Folder(tmp_path_factory.mktemp("projections"))
    made.train("vae", VAE)
    made.train("gan", GAN)
    return made


@pytest.fixture(scope="module")
def tables(folder):
    for model in folder.models:
        folder.project("vae", model["model"])
    return folder.summarise("vae")


def test_a_mapper_is_the_same_bytes_at_every_run_and_says_what_it_is(folder, tmp_path):
    again = folder.train("vae", VAE, out=tmp_path)
    for path in again.values():
        assert path.read_bytes() == (folder.path / path.name).read_bytes()
    manifest = read_json(again["manifest"])
    assert (manifest["mapper"], manifest["kind"], manifest["image_shape"]) == ("vae", "beta_vae", [1, 8, 8])
    assert len(manifest["sigma"]) == len(manifest["divergence"]) == len(manifest["dimensions"]) == 2
    assert manifest["trained_on"] == "train" and manifest["settings"]["beta"] == 1
    assert {effect["trait"] for effect in manifest["effects"]} >= {"brightness", "slant"}
    assert not (folder.path / "progress").exists()


def test_boundaries_are_those_of_the_same_samples_for_every_model(folder, tables):
    first, second = (folder.project("vae", name) for name in ("first", "second"))
    assert len(first) == 30 * 2 and list(first["dimension"][:2]) == ["z0", "z1"]
    assert list(first["sample_id"]) == list(second["sample_id"])
    np.testing.assert_allclose(first["value"], (first["up"] + first["down"]) / 2)
    assert ((first["up"] == 1) | ~first["up_censored"]).all()
    assert (first["censored"] == (first["up_censored"] | first["down_censored"])).all()
    assert first["censored"].mean() < 1 and (first["prediction"] != first["clean_prediction"]).any()


def test_parts_are_kept_for_the_same_attributes_only(folder, tmp_path):
    """An earlier table of attributes gives other codes to start from; the digest belongs to what a part is kept under."""
    digests = set()
    for step in range(2):
        attributes = tmp_path / f"{step}.parquet"
        attributes.write_bytes((folder.path / "digits.parquet").read_bytes())
        if step:
            table = pq.read_table(attributes)
            pq.write_table(table, attributes, compression="none")
        folder.project("gan", "first", attributes=attributes)
        digests.add(json.loads(read_identity(folder.path / "gan-first.parquet")["settings"])["attributes_sha256"])
    assert len(digests) == 2


def test_boundaries_do_not_depend_on_batches(folder):
    small = folder.project("vae", "first", search=SEARCH | {"batch_size": 7}, batch_size=11)
    large = folder.project("vae", "first", search=SEARCH | {"batch_size": 4096}, batch_size=256)
    np.testing.assert_allclose(small["value"], large["value"], atol=1e-12)


def test_the_posterior_unit_is_smaller_so_more_is_tolerated(folder):
    posterior = folder.project("vae", "first", search=SEARCH | {"sigma": "posterior"})
    # Last, since later tests read its file.
    aggregated = folder.project("vae", "first")
    assert posterior["value"].mean() > aggregated["value"].mean()


def test_attributes_are_moved_between_their_values(folder):
    samples = folder.project("gan", "first", attributes=folder.path / "digits.parquet")
    assert set(samples["dimension"]) == {"side=right"} and len(samples) == 30
    manifest = read_json(folder.path / "gan.json")
    assert manifest["categories"] == {"side": ["left", "right"]} and manifest["divergence"] is None
    # a sample at one end has no way to go beyond it: nothing is there to be found or censored
    idle = {"left": "down", "right": "up"}
    sides = dict(zip(folder._ids("digits"), read_table_of(folder), strict=True))
    moved = {None: 0, "left": 0, "right": 0}
    for row in samples.to_dict("records"):
        side = sides[row["sample_id"]]
        moved[side] += 1
        null = {name for name in ("up", "down") if np.isnan(row[name])}
        assert null == ({idle[side]} if side else set())
        assert not [name for name in null if row[f"{name}_censored"]]
        assert row["value"] == (row["up"] if side == "left" else row["down"]) or not side
    assert moved["left"] and moved["right"]


def read_table_of(folder):
    from gfscore.tables.parquet_tables import read_attributes

    return read_attributes(folder.path / "digits.parquet")[0]["side"]


def test_images_of_another_shape_and_unknown_attributes_are_refused(folder):
    manifest = read_json(folder.path / "vae.json")
    write_json(folder.path / "large.json", manifest | {"image_shape": [3, 32, 32]})
    (folder.path / "large.safetensors").write_bytes((folder.path / "vae.safetensors").read_bytes())
    with pytest.raises(
        InputError, match=r"large\.json: made for images of shape \[3, 32, 32\], but digits has \[1, 8, 8\]"
    ):
        folder.project("large", "first")
    with pytest.raises(InputError, match="attribute 'sid' is unknown; did you mean 'side'"):
        folder.train("gan", GAN | {"attributes": ["sid"]})


def test_tables_hold_every_model_dimension_and_class_and_flag_the_constant_one(tables):
    scores, models = tables["projection_scores"], tables["projection_models"]
    assert len(scores) == 3 * 3 * 11
    assert models.set_index("model")["constant"].to_dict() == {"first": False, "second": False, "constant": True}
    constant = models.set_index("model").loc["constant"]
    assert (constant["tolerance"], constant["deviation"], constant["censored"]) == (1, 0, 1)
    assert (scores["deviation"] <= 1 - scores["tolerance"] + 1e-12).all()
    assert (scores["tolerance_low"] <= scores["tolerance"]).all() and (
        scores["tolerance"] <= scores["tolerance_high"]
    ).all()
    whole = scores[(scores["class_index"] == -1) & (scores["dimension_index"] == -1)]
    np.testing.assert_allclose(whole["tolerance"], models["tolerance"])
    assert tables["projection_ranks"]["n"].max() == 2


def test_only_models_that_take_part_are_projected(folder, tables):
    found = folder.summarise("vae", included=["none/second"])
    assert list(found["projection_models"]["model"]) == ["second"] and len(tables["projection_models"]) == 3


def chart_of(name, tables, pictures=()):
    subject = subject_of({"class_scores": CLEAN} | tables, pictures=dict(pictures))
    return drawing_of(CHARTS[name], subject)


def test_charts_show_the_tables(folder, tables):
    pictures = {"vae": read_pictures(folder.path / "vae.npz")}
    matrix = chart_of("projection_tolerance", tables).frame
    matrix = matrix[matrix["metric"] == "tolerance"]
    # the constant classifier last, not on top, and in no mean
    assert matrix["constant"].tolist() == [False] * 6 + [True] * 3 and (matrix["value"][6:] == 1).all()
    scores = tables["projection_scores"]
    others = scores[(scores["model"] != "constant") & (scores["class_index"] == -1) & (scores["dimension_index"] != -1)]
    means = others.groupby("dimension")["tolerance"].mean()
    finding = chart_of("projection_tolerance", tables).finding
    assert finding.subject["dimension"] == means.idxmin() and finding.numbers["mean"] == pytest.approx(means.min())
    alone = tables | {"projection_scores": scores[scores["model"] == "constant"]}
    assert chart_of("projection_tolerance", alone).finding.kind == "all_constant"
    for name in ("projection_effects", "mapper_reconstructions", "mapper_traversals"):
        assert chart_of(name, tables, pictures).figure().axes


def test_effects_have_censoring_beside_tolerance(tables):
    effects, scores = tables["projection_effects"], tables["projection_scores"]
    own = scores[(scores["model"] != "constant") & (scores["class_index"] == -1) & (scores["dimension"] == "z1")]
    row = effects[effects["dimension"] == "z1"].iloc[0]
    for name in ("tolerance", "censored", "accuracy"):
        assert row[name] == pytest.approx(own[name].mean())
    beside = f"z1  ({number(row['tolerance'])}; {percent(round(row['censored'], 3))})"
    assert beside in set(chart_of("projection_effects", tables).frame["row"])
    unknown = effects.assign(models=0, tolerance=None, censored=None, accuracy=None)
    assert chart_of("projection_effects", tables | {"projection_effects": unknown}).figure().axes
    # Models that are constant under one mapper may not be so under another.
    second = effects.assign(mapper="second", accuracy=0.25)
    both = pd.concat([effects.assign(accuracy=0.5), second], ignore_index=True)
    assert "0.250 to 0.500" in chart_of("projection_effects", tables | {"projection_effects": both}).words.note


@pytest.mark.parametrize(
    ("chart", "table", "column", "factor"),
    [
        ("projection_effects", "projection_effects", "shift", 2),
        ("projection_tolerance", "projection_scores", "tolerance", 0.5),
    ],
)
def test_findings_name_the_mapper_where_dimensions_of_two_have_the_same_name(tables, chart, table, column, factor):
    alone = chart_of(chart, tables).finding.subject["dimension"]
    second = tables[table].assign(mapper="second")
    second[column] *= factor
    both = tables | {table: pd.concat([tables[table], second], ignore_index=True)}
    assert chart_of(chart, both).finding.subject["dimension"] == f"second {alone}"


def test_an_audit_with_groups_takes_the_differences_of_the_measure_that_leaves_samples_undisturbed(folder, tables):
    ids, labels = folder._ids("digits"), open_described(folder.path / "digits.json")[0].labels
    frame = pd.DataFrame({"sample_id": ids, "label": labels, "prediction": labels, "value": 1, "steps": 1})
    frames = {(model["model"], "attacked"): frame for model in folder.models}
    # One side is never told what it is.
    wrong = np.where(read_table_of(folder) == "left", (labels + 1) % 10, labels)
    frames |= {
        (model["model"], "clean"): frame.assign(prediction=wrong, value=wrong == labels) for model in folder.models
    }
    attacked = {"kind": "adversarial", "norm": "linf", "eps": 0.1, "attacks": [{"name": "fgsm"}]}
    inputs = folder.inputs({"attacked": attacked, "clean": {"kind": "clean"}}, frames)
    grouping = Grouping.read(folder.path / "digits.parquet", dataset="digits", attributes=["side"], balanced=None)
    groups = {"attributes": ["side"], "balanced": None, "positive": None, "minimum_cell": 1}
    projections = folder.projections(inputs, "vae")
    found = tabulated(inputs, NAMES, groups=groups, grouping=grouping, projections=projections)
    models, metrics = found["projection_models"], found["group_metrics"]
    assert set(models["group_measure"]) == {"clean"} and (models["eopp"] == 1).all()
    assert set(metrics["measure"]) == {"attacked", "clean"}
    shown = ["dataset", "model", "tolerance", "deviation", "coupling"]
    pd.testing.assert_frame_equal(models[shown], tables["projection_models"][shown])
    without = set(tabulated(inputs, NAMES))
    assert not without & set(tables) and not without & {"group_metrics", "group_scores"}


def test_the_shipped_search_is_what_the_step_takes():
    config = shipped_configuration()
    assert set(config["mappers"]["digits-vae"]["search"]) == set(SEARCH)


@pytest.mark.parametrize(("samples", "drawn"), [(5, 10), (10_000, 300)])
def test_a_search_takes_at_least_one_sample_of_each_class_and_at_most_all(folder, samples, drawn):
    rows = folder.project("vae", "first", search=SEARCH | {"subset": {"samples": samples}, "steps": 1})
    assert rows["sample_id"].nunique() == drawn
    assert rows["label"].nunique() == 10
