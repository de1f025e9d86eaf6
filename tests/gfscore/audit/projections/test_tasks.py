"""Two mappers, two tasks and two models: every number of the tables against the formulas, computed directly."""

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.projections.tasks import read_projections, read_tasks
from gfscore.audit.step_params import TaskSettings
from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.measures.samples import PROJECTION_TABLE
from gfscore.projection.mappers.conditions import condition_names
from gfscore.show.audit_charts import drawing_of
from gfscore.show.charts import CHARTS
from gfscore.tables.parquet_tables import write_attributes, write_logits, write_table
from helpers.steps import DIGEST, audit_inputs, models_named, tabulated, write_dataset
from helpers.synthetic_audits import subject_of

N = 240
CLASSES = {"gender": ["Female", "Male"], "age": ["old", "young"]}
CATEGORIES = {"age": ["old", "young"], "gender": ["Female", "Male"], "race": ["x", "y", "z"]}
POSITIVE = {"gender": "Male", "age": None}
MODELS = ["first", "second"]
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame({name: RNG.choice(of, N) for name, of in CATEGORIES.items()})
PEOPLE.insert(0, "sample_id", [f"s{row:03d}" for row in range(N)])
LOGITS = {(task, model): RNG.normal(size=(N, 2)).astype(np.float32) for task in CLASSES for model in MODELS}
CONDITIONS = condition_names(CATEGORIES)
MAPPERS = {
    "vae": {"dimensions": ["z0", "z1", "z2"], "categories": None, "image_shape": [3, 64, 64]},
    "conditional": {"dimensions": CONDITIONS, "categories": CATEGORIES, "image_shape": [3, 32, 32]},
}
MOVES = {}
"""u+ and u- (n, D) by mapper, task and model."""
PROJECTED = np.arange(0, N, 6)
GROUPS = {"attributes": list(CATEGORIES), "balanced": None, "minimum_cell": 5}


def labels_of(task):
    return np.searchsorted(CLASSES[task], PEOPLE[task]).astype(np.int32)


def accuracy_of(task, model):
    return float((LOGITS[task, model].argmax(axis=1) == labels_of(task)).mean())


def moves(mapper, folder, model):
    """Write the projections of a model: a prediction changes after a random move to either side that has room."""
    names = MAPPERS[mapper]["dimensions"]
    up, down = RNG.choice([0.25, 0.5, 0.75, 1.0], (2, len(PROJECTED), len(names)))
    if mapper == "conditional":
        for place, name in enumerate(names):
            attribute, value = name.split("=")
            having = (PEOPLE[attribute] == value).to_numpy()[PROJECTED]
            up[having, place], down[~having, place] = np.nan, np.nan
    MOVES[mapper, model["dataset"], model["model"]] = up, down
    rows = np.repeat(np.arange(len(PROJECTED)), len(names))
    shown = LOGITS[model["dataset"], model["model"]].argmax(axis=1)[PROJECTED][rows]
    known = {"sample_id": PEOPLE["sample_id"].to_numpy()[PROJECTED][rows], "prediction": shown}
    known |= {"label": labels_of(model["dataset"])[PROJECTED][rows], "clean_prediction": shown, "value": 0.5}
    known |= {"censored": False, "dimension": np.tile(names, len(PROJECTED)), "up": up.ravel(), "down": down.ravel()}
    known |= {"up_censored": up.ravel() == 1, "down_censored": down.ravel() == 1}
    path = folder / f"{mapper}-{model['dataset']}-{model['model']}.parquet"
    frame = pd.DataFrame(known)[PROJECTION_TABLE.column_names]
    write_table(path, PROJECTION_TABLE, frame, identity={**model, "measure": mapper})
    return path


class Made:
    """The files of the audit, and its tables."""

    def __init__(self, folder):
        models = {task: models_named(*MODELS, dataset=task) for task in CLASSES}
        frames = {}
        for name in MODELS:
            predicted = LOGITS["gender", name].argmax(axis=1)
            right = predicted == labels_of("gender")
            samples = {"sample_id": PEOPLE["sample_id"], "label": labels_of("gender"), "prediction": predicted}
            frames[name, "clean"] = pd.DataFrame(samples | {"value": right.astype(float)})
        self.inputs = audit_inputs(folder, models["gender"], {"clean": {"kind": "clean"}}, frames)
        accuracies = {f"none/{name}": accuracy_of("gender", name) for name in MODELS}
        selection = {"included": list(accuracies), "excluded": [], "guessing": [], "clean_accuracy": accuracies}
        write_json(self.inputs.selection, selection)
        for task, classes in CLASSES.items():
            write_json(
                folder / f"{task}.json",
                {"dataset": task, "digest": DIGEST, "classes": classes, "samples": N, "image_shape": [3, 64, 64]},
            )
            named = pd.DataFrame({"sample_id": PEOPLE["sample_id"], "label": labels_of(task)})
            write_dataset(folder / f"{task}.parquet", named)
            about = {"dataset": task, "categories": CATEGORIES}
            write_attributes(folder / f"{task}-attributes.parquet", PEOPLE.astype(object), identity=about)
            for model in models[task]:
                columns = {"sample_id": PEOPLE["sample_id"].to_numpy(), "label": labels_of(task)}
                columns |= {"logits": LOGITS[task, model["model"]]}
                path = folder / f"logits-{task}-{model['model']}.parquet"
                write_logits(path, **columns, identity={**model, "dataset_digest": DIGEST})
        self.files = {"manifest": folder / "gender.json", "dataset": folder / "gender.parquet"}
        self.files |= {"task_manifests": [folder / "age.json"], "task_datasets": [folder / "age.parquet"]}
        self.files |= {"task_attributes": [folder / "age-attributes.parquet"]}
        self.files |= {"task_logits": [folder / f"logits-age-{name}.parquet" for name in MODELS]}
        self.settings = [
            TaskSettings(models=models[task], label_attribute=task, groups=GROUPS | {"positive": POSITIVE[task]})
            for task in CLASSES
        ]
        paths = [moves(mapper, folder, model) for mapper in MAPPERS for task in CLASSES for model in models[task]]
        beside = {"effects": [], "divergence": None}
        manifests = [about | beside | {"mapper": mapper} for mapper, about in MAPPERS.items()]
        tasks = read_tasks(self.inputs, AuditFiles.from_inputs(self.files), self.settings, confidence=0.95)
        projections = read_projections(self.inputs, paths, manifests, tasks)
        grouping = Grouping.read(folder / "gender-attributes.parquet", dataset="gender", attributes=list(CATEGORIES))
        how = {"groups": self.settings[0].groups, "grouping": grouping, "projections": projections}
        self.tables = tabulated(self.inputs, CLASSES["gender"], **how)

    def table(self, name, *more):
        """A table by mapper, task and model, and more keys."""
        return self.tables[name].set_index(["mapper", "dataset", "model", *more])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("tasks"))


def differences(task, model, attribute):
    """DP, EOpp and EOdd by Eq. 2 to 4, the last as a difference, of the positive class or the mean over classes."""
    predicted, labels = LOGITS[task, model].argmax(axis=1), labels_of(task)
    found = []
    for positive in range(2) if POSITIVE[task] is None else [CLASSES[task].index(POSITIVE[task])]:
        rates = []
        for group in CATEGORIES[attribute]:
            inside = (PEOPLE[attribute] == group).to_numpy()
            parts = (inside, inside & (labels == positive), inside & (labels != positive))
            rates.append([(predicted[part] == positive).mean() if part.any() else np.nan for part in parts])
        dp, true, false = (np.ptp(column) if np.isfinite(column).all() else np.nan for column in np.transpose(rates))
        found.append([dp, true, np.nan if np.isnan([true, false]).any() else max(true, false)])
    return np.mean(found, axis=0)


def tolerances(mapper, task, model):
    """Section 5.2 in units of sigma: of each dimension the mean of both sides, or the one that there is."""
    return np.nanmean(np.stack(MOVES[mapper, task, model]), axis=0).mean(axis=0)


CASES = [(mapper, task, model) for mapper in MAPPERS for task in CLASSES for model in MODELS]


@pytest.mark.parametrize(("mapper", "task", "model"), CASES)
def test_scores_over_all_sensitive_attributes_are_the_formulas(made, mapper, task, model):
    row = made.table("projection_models").loc[(mapper, task, model)]
    names = MAPPERS[mapper]["dimensions"]
    sensitive = np.array([not name.startswith(f"{task}=") for name in names])
    by_dimension = tolerances(mapper, task, model)[sensitive]
    assert row["dimensions"] == sensitive.sum() and row["tolerance"] == pytest.approx(by_dimension.mean())
    share = 1 - by_dimension / by_dimension.max()
    share = share[share > 0]
    assert row["coupling"] == pytest.approx(-(share * np.log(share)).sum())
    up, down = MOVES[mapper, task, model]
    expected = np.abs(up - down).mean() / 2 if mapper == "vae" else np.nan
    assert row["deviation"] == pytest.approx(expected, nan_ok=True)
    assert row["task_accuracy"] == accuracy_of(task, model) and row["n"] < N
    assert (row["resized"] == "64x64 to 32x32") if mapper == "conditional" else pd.isna(row["resized"])
    others = [name for name in CATEGORIES if name != task]
    mean = np.mean([differences(task, model, name) for name in others], axis=0)
    np.testing.assert_allclose(row[["dp", "eopp", "eodd"]].astype(float), mean)
    assert row["group_attributes"] == 2


@pytest.mark.parametrize(("mapper", "task", "model"), CASES)
def test_each_task_by_each_attribute_is_the_formulas(made, mapper, task, model):
    rows = made.table("projection_attributes").loc[(mapper, task, model)].set_index("attribute")
    by_dimension = pd.Series(tolerances(mapper, task, model), MAPPERS[mapper]["dimensions"])
    assert rows.index.is_unique and len(rows) == (6 if mapper == "vae" else 3)
    for attribute in CATEGORIES:
        row = rows.loc[attribute]
        assert row["own"] == (attribute == task)
        np.testing.assert_allclose(row[["dp", "eopp", "eodd"]].astype(float), differences(task, model, attribute))
        assert np.isnan(row["eopp"]) == (attribute == task)
        moved = by_dimension[by_dimension.index.str.startswith(f"{attribute}=")]
        assert row["dimensions"] == len(moved)
        assert row["tolerance"] == pytest.approx(moved.mean(), nan_ok=True)
    if mapper == "vae":
        assert rows.loc["z1", "tolerance"] == pytest.approx(by_dimension["z1"]) and pd.isna(rows.loc["z1", "dp"])


def test_scores_and_ranks_have_mapper_and_task_as_keys_and_effects_are_of_the_own_dataset(made):
    scores = made.tables["projection_scores"]
    keys = ["mapper", "dataset", "model", "dimension_index", "class_index"]
    assert not scores.duplicated(keys).any() and len(scores) == 2 * 2 * (1 + 2) * ((1 + 3) + (1 + len(CONDITIONS)))
    whole = scores[(scores["class_index"] == -1) & (scores["dimension_index"] >= 0)]
    assert whole.loc[whole["own"], "dimension"].str.split("=").str[0].eq(whole.loc[whole["own"], "dataset"]).all()
    assert set(map(tuple, made.tables["projection_ranks"][["mapper", "dataset"]].drop_duplicates().to_numpy())) == {
        (mapper, task) for mapper in MAPPERS for task in CLASSES
    }


@pytest.mark.parametrize(
    "name", ["projection_tasks", "projection_profiles", "projection_models", "projection_tolerance"]
)
def test_charts_draw_every_task_and_mapper(made, name):
    drawing = drawing_of(CHARTS[name], subject_of({"class_scores": made.tables["class_scores"]} | made.tables))
    assert drawing.figure().axes and drawing.finding.sentence
    if name == "projection_tasks":
        frame = drawing.frame.set_index(["panel", "task", "attribute"])["value"]
        mean = np.mean([differences("age", model, "race")[1] for model in MODELS])
        assert frame["EOpp", "age", "race"] == pytest.approx(mean)
        mean = np.mean([tolerances("vae", "age", model)[2] for model in MODELS])
        assert frame["vae: 1 \u2212 Tol", "age", "z2"] == pytest.approx(1 - mean)


def test_mappers_that_move_the_same_attributes_have_influences_of_their_own(made):
    rows = made.tables["projection_attributes"]
    second = rows[rows["mapper"] == "conditional"].assign(mapper="second")
    second["tolerance"] = second["tolerance"] / 10
    subject = subject_of(made.tables | {"projection_attributes": pd.concat([rows, second], ignore_index=True)})

    profiles = drawing_of(CHARTS["projection_profiles"], subject).frame
    of_race = profiles[(profiles["task"] == "age") & (profiles["attribute"] == "race")].set_index("influence")["value"]
    mean = 1 - of_race["conditional: 1 \u2212 Tol"]
    assert of_race["second: 1 \u2212 Tol"] == pytest.approx(1 - mean / 10)
    assert {"DP", "EOpp", "EOdd"} <= set(of_race.index) and "1 \u2212 Tol" not in of_race

    strongest = drawing_of(CHARTS["projection_tasks"], subject).finding
    assert strongest.subject["attribute"].startswith("second ")


def test_tasks_that_compare_no_groups_have_accuracies(made):
    settings = [entry.model_copy(update={"groups": None}) for entry in made.settings]
    _, age = read_tasks(made.inputs, AuditFiles.from_inputs(made.files), settings, confidence=0.95)
    assert age.accuracies == {f"none/{name}": accuracy_of("age", name) for name in MODELS} and age.metrics.empty


def test_a_mean_over_models_counts_those_that_are_not_constant(made):
    rows = made.tables["projection_attributes"]
    constant = (rows["mapper"] == "vae") & (rows["dataset"] == "age") & (rows["model"] == "first")
    tables = made.tables | {"projection_attributes": rows.assign(constant=constant)}
    frame = drawing_of(CHARTS["projection_tasks"], subject_of(tables)).frame
    counts = frame[frame["panel"] == "vae: 1 \u2212 Tol"].groupby("task")["models"].unique()
    assert counts.map(list).to_dict() == {"gender": [2], "age": [1]}


def test_means_over_the_attributes_of_each_mapper_are_told_apart(made):
    rows = made.tables["projection_models"]
    moves_fewer = rows["mapper"] == "conditional"
    tables = made.tables | {"projection_models": rows.assign(dp=rows["dp"].where(~moves_fewer, 0.0))}
    frame = drawing_of(CHARTS["projection_models"], subject_of(tables)).frame
    panels = set(frame["panel"])
    assert {"vae: DP", "conditional: DP", "EOpp", "EOdd"} <= panels and "DP" not in panels
    assert set(frame.loc[frame["panel"] == "conditional: DP", "value"]) == {0.0}


def test_a_model_that_is_constant_on_one_mapper_alone_is_marked(made):
    rows = made.tables["projection_scores"]
    constant = (rows["mapper"] == "vae") & (rows["model"] == "first")
    accuracy = rows["accuracy"].where(rows["mapper"] == "vae", 0.125)
    tables = made.tables | {"projection_scores": rows.assign(constant=constant, accuracy=accuracy)}
    tables["class_scores"] = made.tables["class_scores"]
    frame = drawing_of(CHARTS["projection_tolerance"], subject_of(tables)).frame
    marked = frame.loc[frame["constant"].astype(bool), "model"].unique()
    assert len(marked) == 1 and marked[0].startswith("first  (12.5% and ")
    assert marked[0].endswith(", constant on vae)")


def test_a_task_of_other_images_is_refused(made, tmp_path):
    other = pd.DataFrame({"sample_id": PEOPLE["sample_id"] + "x", "label": labels_of("age")})
    write_dataset(tmp_path / "age.parquet", other)
    with pytest.raises(InputError, match="its images are not those of"):
        files = AuditFiles.from_inputs(made.files | {"task_datasets": [tmp_path / "age.parquet"]})
        read_tasks(made.inputs, files, made.settings, confidence=0.9)
