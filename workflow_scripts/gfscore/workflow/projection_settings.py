"""Mistakes in what config.yaml says about mappers and projections. Imports nothing heavy, like configuration."""

from gfscore.core.errors import unknown
from gfscore.workflow import plan
from gfscore.workflow.projection_layout import WITH_CONDITIONS


def mapper_mistakes(config, name, entry):
    """Yield what is wrong with an entry of `mappers` beyond its schema."""
    where = f"mappers: {name}"
    for key in ("train_on", "evaluate_on"):
        if entry[key] not in config["datasets"]:
            yield f"{where}: {key}: {unknown('dataset', entry[key], config['datasets'])}"
        elif entry["kind"] in WITH_CONDITIONS:
            yield from _attribute_mistakes(config, f"{where}: {key}", entry, entry[key])


def projection_mistakes(config, audit):
    """Yield what is wrong with an audit's `projection`: its mapper, and models that cannot classify images."""
    where, mapper = f"audits: {audit}: projection", plan.projection_of(config, audit)
    if mapper is None:
        return
    if mapper not in config["mappers"]:
        yield f"{where}: {unknown('mapper', mapper, config['mappers'])}"
        return
    if config["mappers"][mapper]["kind"] in WITH_CONDITIONS:
        yield from _attribute_mistakes(config, where, config["mappers"][mapper], plan.dataset_of(config, audit))
    for model in plan.models_of(config, audit):
        source = plan.entry_of(config, **model)["source"]
        if "corruption" not in plan.SERVES[source]:
            yield (
                f"{where}: model {model['threat']}/{model['model']} (source {source}) classifies no images; leave it "
                "out, or set projection: null"
            )


def _attribute_mistakes(config, where, entry, dataset):
    attributes = plan.attributes_of(config, dataset)
    if attributes is None:
        yield f"{where}: dataset {dataset!r} has no attributes that could be moved; describe them in its entry"
        return
    known = plan.attribute_names(attributes)
    for name in entry["attributes"] or ():
        if known and name not in known:
            yield f"{where}: {unknown('attribute', name, known)}"
