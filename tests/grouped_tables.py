"""Tables about groups of samples and about projections for synthetic audits, with numbers that a test can state."""

import numpy as np

from gfscore.audit.groups.metrics import MACRO, WORST
from gfscore.tables.parquet_tables import frame_of
from gfscore.tables.table import ALL
from gfscore.workflow.catalogue import CATALOGUE

ATTRIBUTES = {"side": ["left", "right"], "size": ["tiny", "normal", "huge"]}
DIMENSIONS = ["z0", "z1", "slant=left"]
OTHER_TASK = "another-task"
METRICS = ("dp", "eopp", "eodd", "aodd")


def grouped_tables(audit, attributes=ATTRIBUTES, dimensions=DIMENSIONS):
    """The tables group_* and projection_* of an audit as data frames, by name.

    Group g of attribute a of model m has the value 0.5 + 0.1 a + 0.05 g + 0.01 m, 0.04 on either side; the last group
    of the last attribute has few samples, and none in the last class; class k of a group has its value less 0.02 k. Metric i has 0.1 (1 + a) + 0.02 i. Dimension d has the Tolerance
    0.9 - 0.1 d + 0.01 m and the Deviation 0.05 (1 + d); by class k, the mean Tolerance is 0.01 k less and the mean
    Deviation the same. For OTHER_TASK, whose own attribute is the last one, Tolerances are 0.1 less.
    """
    keys = [{key: model[key] for key in ("dataset", "threat", "model")} for model in audit.models]
    classes = audit.class_scores.drop_duplicates("class_index").set_index("class_index")["class_name"].to_dict()
    scores = [
        row
        for m, key in enumerate(keys)
        for name in audit.measures
        for row in _groups(key, name, m, attributes, classes)
    ]
    metrics = [row for m, key in enumerate(keys) for row in _metrics(key, attributes)]
    projected = [row for m, key in enumerate(keys) for row in _projected(key, m, dimensions, classes)]
    models = [
        {
            **key,
            "mapper": "vae",
            "n": 100,
            "dimensions": len(dimensions),
            "constant": False,
            "tolerance": row["tolerance"],
        }
        for key, row in zip(
            keys, (row for row in projected if row["dimension_index"] == row["class_index"] == ALL), strict=True
        )
    ]
    attributes_of_tasks = [row for m, key in enumerate(keys) for row in _tasks(key, m, attributes, dimensions)]
    models += [row | {"dataset": OTHER_TASK, "tolerance": row["tolerance"] - 0.1, "dp": 0.2} for row in models]
    effects = [
        {"mapper": "vae", "dimension_index": d, "dimension": name, "sigma": 1.0, "trait": trait, "how": "measured",
         "shift": shift, "strength": abs(shift)}
        for d, name in enumerate(dimensions) for trait, shift in (("contrast", 0.1), ("brightness", -0.5))
    ]  # fmt: skip
    frames = {"group_scores": scores, "group_metrics": metrics, "projection_scores": projected}
    frames |= {"projection_models": models, "projection_effects": effects}
    frames |= {"projection_attributes": attributes_of_tasks}
    return {name: frame_of(CATALOGUE[name], rows) for name, rows in frames.items()}


def _groups(key, measure, m, attributes, classes):
    for a, (attribute, groups) in enumerate(attributes.items()):
        for g, group in enumerate(groups):
            few = a == len(attributes) - 1 and g == len(groups) - 1
            value = 0.5 + 0.1 * a + 0.05 * g + 0.01 * m
            row = {**key, "measure": measure, "attribute": attribute, "group_index": g, "group": group}
            row |= {
                "class_index": ALL,
                "class_name": "all",
                "n": 8 if few else 200,
                "value": value,
                "low": value - 0.04,
            }
            row |= {"high": value + 0.04, "interval": "betting", "confidence": 0.95, "small": few, "left_out": 5 * a}
            yield row
            for place, (index, name) in enumerate(classes.items()):
                own = {"class_index": index, "class_name": name, "n": row["n"] // len(classes)}
                if few and place == len(classes) - 1:
                    yield row | own | {"n": 0, "value": None, "low": 0.0, "high": 1.0}
                else:
                    moved = {end: row[end] - 0.02 * place for end in ("value", "low", "high")}
                    yield row | own | moved


def _metrics(key, attributes):
    for a, attribute in enumerate(attributes):
        for i, metric in enumerate(METRICS):
            value = 0.1 * (1 + a) + 0.02 * i
            row = {**key, "measure": "clean", "attribute": attribute, "class_index": ALL, "metric": metric, "n": 400}
            row |= {"wilson_low": value - 0.03, "wilson_high": value + 0.03, "confidence": 0.95, "small": a > 0}
            row |= {"value": value, "as_printed": value / 2, "smallest_cell": 30}
            yield row | {"class_name": MACRO}
            yield row | {"class_name": WORST, "value": 2 * value}


def _tasks(key, m, attributes, dimensions):
    for task, less in ((key["dataset"], 0.0), (OTHER_TASK, 0.1)):
        shared = {**key, "dataset": task, "mapper": "vae", "n": 100, "constant": False}
        for d, name in enumerate(dimensions):
            moved = {"tolerance": 0.9 - 0.1 * d + 0.01 * m - less, "deviation": 0.05 * (1 + d), "censored": 0.8}
            yield shared | moved | {"attribute": name, "own": False, "dimensions": 1}
        for a, name in enumerate(attributes):
            own = task == OTHER_TASK and a == len(attributes) - 1
            differing = {"dp": 0.1 * (1 + a), "eopp": None if own else 0.1 * (1 + a) + 0.02}
            yield shared | differing | {"attribute": name, "own": own, "dimensions": 0}


def _projected(key, m, dimensions, classes):
    beside = {"censored": 0.8, "agreement": 0.9, "accuracy": 0.95, "decoded_accuracy": 0.85, "confidence": 0.95}
    own = [(0.9 - 0.1 * d + 0.01 * m, 0.05 * (1 + d)) for d in range(len(dimensions))]
    rows = [(ALL, "all", np.mean(own, axis=0)), *((d, name, own[d]) for d, name in enumerate(dimensions))]
    of_classes = [(ALL, "all", 0), *((index, name, place) for place, (index, name) in enumerate(classes.items()))]
    for index, class_name, less in of_classes:
        for place, name, (whole, deviation) in rows if index == ALL else rows[:1]:
            tolerance = whole - 0.01 * less
            yield {
                **key, "mapper": "vae", "dimension_index": place, "dimension": name, "class_index": index,
                "class_name": class_name, "n": 100, "tolerance": tolerance, "tolerance_low": tolerance - 0.03,
                "tolerance_high": tolerance + 0.03, "deviation": deviation, "up": tolerance, "down": tolerance,
                "tolerance_agreeing": tolerance, **beside,
            }  # fmt: skip
