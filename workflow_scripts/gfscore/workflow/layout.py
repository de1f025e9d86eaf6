"""Where the files of results/ stand that a step of the workflow asks for.

Every function takes a complete configuration and the name of an audit or dataset. Imports nothing
heavy, because every run of Snakemake reads it.
"""

import hashlib
import time
from functools import cache
from pathlib import Path

from gfscore.audit.table_names import COMPARISONS, CONFUSIONS
from gfscore.audit.verdicts import gate_rules
from gfscore.core.errors import InputError
from gfscore.core.identity import MODEL
from gfscore.networks.architecture_files import describe_network, network_files
from gfscore.networks.callables import folder
from gfscore.networks.model_source import model_sources
from gfscore.workflow import plan
from gfscore.workflow.measure_layout import measure_tables
from gfscore.workflow.projection_layout import projection_results

SMALL = 1 << 20
"""Bytes of a file that is read whenever a run is planned, as Snakemake itself does."""


def model_files(config, audit, stage, *, extension="parquet"):
    """One file per model of an audit, in the order of config."""
    return [f"results/{stage}/{MODEL.format(**model)}.{extension}" for model in plan.models_of(config, audit)]


def logit_files(config, audit):
    """Logits of every model of an audit."""
    return model_files(config, audit, "logits")


def sample_files(config, audit):
    """Sample tables of an audit: one per model and measure, the measures of the first model first."""
    return _samples_of(plan.subject_of(config, audit))


def judged_sample_files(config, audit):
    """Those of the measures that its gate reads: a verdict waits for no other."""
    return _samples_of(plan.judged_subject_of(config, audit))


def _samples_of(subject):
    return [
        f"results/samples/{measure}/{MODEL.format(**model)}.parquet"
        for model in subject["models"]
        for measure in subject["measures"]
    ]


def check_files(config, audit):
    """Checks of the models of an audit that come with logits."""
    return [
        f"results/checks/{MODEL.format(**model)}.json"
        for model in plan.models_of(config, audit)
        if plan.has_logits(config, **model)
    ]


def pin_checks(config, audit):
    """Checks of the datasets of an audit whose digest is pinned, which may have happened after they were fetched."""
    pinned = [name for name in plan.datasets_of(config, audit) if plan.pinned_digest_of(config, name)]
    return [f"results/checks/{name}.json" for name in pinned]


def sweep_files(config, audit):
    """Temperature sweeps of the measure that an audit calibrates; nothing when it searches no temperature."""
    measure = plan.calibrated_measure(config, audit)
    return model_files(config, audit, f"sweeps/{measure}") if measure else []


def calibrated_logit_files(config, audit):
    """Logits that an audit needs at other temperatures than 1; nothing when it searches none."""
    return logit_files(config, audit) if plan.calibrated_measure(config, audit) else []


def distance_files(config, audit):
    """Attack distances that an audit calibrates by; nothing when it does not."""
    measure = plan.distance_measure(config, audit)
    return model_files(config, audit, f"samples/{measure}") if measure else []


def calibration_table(config, audit):
    """Searched curves of an audit; nothing when it searches no temperature."""
    return f"results/audits/{audit}/calibration.parquet" if plan.calibrated_measure(config, audit) else []


def calibration_json(config, audit):
    """Chosen temperatures of an audit; nothing when it searches none."""
    return f"results/audits/{audit}/calibration.json" if plan.calibrated_measure(config, audit) else []


def sensitivity_table(config, audit):
    """Scores of an audit under a shift of the logits; nothing when it has no scores."""
    return f"results/audits/{audit}/sensitivity.parquet" if plan.has_kind(config, audit, "great") else []


def checkpoint_file(config, dataset, threat, model, *, extension):
    """Checkpoint of a model (safetensors) or its manifest (json), one for all data of its zoo.

    Classifiers of others stay where their manifest says, so they have no checkpoint file in results/.
    """
    zoo = plan.zoo_of(config, dataset)
    if plan.entry_of(config, dataset, threat, model)["source"] in plan.FITTED:
        return f"results/trained/{zoo}/{threat}/{model}.{extension}"
    return f"results/checkpoints/{zoo}/{threat}/{model}.json" if extension == "json" else []


def placed_checkpoint(config, zoo, threat, model):
    """Checkpoint file of an entry without url, so that another file in its place is noticed; nothing for other entries.

    Nothing either where the file is missing: fetch_checkpoint says what to do about it.
    """
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    own = entry["source"] != "robustbench" and not entry["url"]
    return present(entry["path"]) if own else []


def present(path):
    """A file of the user as a job's input, where there is one, else nothing: the step that reads it says what to do.

    An input that is missing would not do. For Snakemake what was made of it before is up to date then, whatever path
    the configuration has now. InputError for a file from the future, beyond CLOCKS_APART: nothing made of it is newer;
    and for one in a folder that may not be entered.
    """
    try:
        if not path or not Path(path).is_file():
            return []
    except OSError as error:
        raise InputError(
            f"{path}: cannot be looked at ({error.strerror}); make its folder accessible, or move it"
        ) from error
    ahead = Path(path).stat().st_mtime - time.time()
    if ahead > CLOCKS_APART:
        raise InputError(
            f"{path}: its time of change lies {ahead / 3600:.1f} hours in the future, so all that is made of it would "
            f"be out of date at once; set it to now with: touch {path}"
        )
    return path


def imported_file(config, dataset, threat, model):
    """File of logits, or of values per sample, that a model's entry names; nothing where it is missing."""
    return present(plan.entry_of(config, dataset, threat, model)["path"])


CLOCKS_APART = 60
"""Seconds by which the clocks of machines that share files may differ; Snakemake itself tells of less."""


def state(file):
    """What tells a file that a user placed from another one; None for none, a missing one, or one of results/.

    Its SHA-256 up to SMALL bytes, so that a copy is the same file, and size and time of change (ns) beyond.
    """
    if not file or file.startswith("results/") or not Path(file).is_file():
        return None
    found = Path(file).stat()
    if found.st_size <= SMALL:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return [found.st_size, found.st_mtime_ns]


def classifier_files(config, dataset, threat, model):
    """What a job needs that shows images to a classifier, by the names of its inputs."""
    of_model = {"dataset": dataset, "threat": threat, "model": model}
    zoo = plan.zoo_of(config, dataset)
    return {
        "dataset": f"results/datasets/{dataset}.json",
        "images": stored_images(config, dataset),
        "checkpoint": checkpoint_file(config, **of_model, extension="safetensors"),
        "model": checkpoint_file(config, **of_model, extension="json"),
        "architecture": architecture_files(config, zoo, threat, model),
    }


def trained_manifests(config, audit):
    """Manifests of the classifiers of an audit that the workflow trains: they record the measured robust accuracy."""
    return [
        checkpoint_file(config, **model, extension="json")
        for model in plan.models_of(config, audit)
        if plan.entry_of(config, **model)["source"] == "trained"
    ]


def fetched_manifests(config, audit):
    """Manifests of the checkpoints, or backbones, of an audit that are fetched or placed by hand."""
    zoo = plan.zoo_of(config, plan.dataset_of(config, audit))
    return [
        f"results/checkpoints/{zoo}/{model['threat']}/{model['model']}.json"
        for model in plan.models_of(config, audit)
        if plan.entry_of(config, **model)["source"] in plan.FETCHED
    ]


def dataset_manifest(config, audit):
    """Manifest of the data that an audit evaluates."""
    return f"results/datasets/{plan.dataset_of(config, audit)}.json"


def generator_manifest(config, audit):
    """Manifest of the generator that measured an audit's label-error rates; nothing when config states them."""
    measured = plan.label_error_rate_of(config, audit) == "from_generator"
    return f"results/generated/{plan.dataset_of(config, audit)}.json" if measured else []


def path_of_images(config, dataset):
    """File or folder that holds the images of a dataset; None where they ship with a package."""
    entry = config["datasets"][dataset]
    return f"results/generated/{dataset}.npz" if entry["source"] == "generated" else entry.get("path")


def stored_images(config, dataset):
    """The same where it is one file, which jobs depend on; nothing for folders, whose times of change say little.

    Nothing either where it is missing, unless the workflow makes it.
    """
    entry = config["datasets"][dataset]
    if entry["source"] == "generated":
        return path_of_images(config, dataset)
    # The file that names the images of a folder decides which there are.
    return present(path_of_images(config, dataset)) or present(entry.get("list"))


def attributes_reference(config, dataset):
    """Manifest of the dataset whose samples fix the thresholds of a dataset's attributes; nothing where none does."""
    name = plan.attributes_of(config, dataset).get("fixed_on")
    return f"results/datasets/{name}.json" if name else []


def attributes_file(config, dataset):
    """File that a dataset's attributes are read from; nothing where that is the dataset itself.

    Nothing either where the file is missing: read_attributes says what to do about it.
    """
    return present(plan.attributes_of(config, dataset).get("path"))


def attributes_table(config, audit):
    """Attributes of the samples that an audit evaluates; nothing when it compares no groups."""
    dataset = plan.dataset_of(config, audit)
    return f"results/attributes/{dataset}.parquet" if plan.groups_of(config, audit) else []


def gate_attributes(config, audit):
    """The same when a rule of its gate judges groups."""
    rules = config["audits"][audit]["gate"]
    judged = any(rule["statistic"] == gate_rules.GROUP_GAP for rule in rules)
    return attributes_table(config, audit) if judged else []


def architecture_files(config, zoo, threat, model):
    """Files of the project's folder architectures/ that make a network, in order; nothing for all other networks."""
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    return _network_files(entry["architecture"], folder()) if entry["source"] == "torch" else []


def checkpoint_state(config, zoo, threat, model):
    """What tells an entry's checkpoint and the code of its network from others in their places; None for neither."""
    entry = plan.zoo_entry_of(config, zoo, threat, model)
    placed = state(placed_checkpoint(config, zoo, threat, model))
    digest = _network_digest(entry["architecture"], folder()) if entry["source"] == "torch" else None
    return [placed, digest] if digest else placed


@cache
def _network_files(architecture, home):
    # Once in a run, since every job that opens a classifier asks; by the folder, so that another one is another answer.
    return network_files(architecture)


@cache
def _network_digest(architecture, home):
    return describe_network(architecture).get("architecture_sha256")


def cost_records(config, audit):
    """Where the cost of every job stands that an audit's values come from, with what it was spent on, in order."""
    records = []
    for model in plan.models_of(config, audit):
        source = plan.entry_of(config, **model)["source"]
        of_zoo = {**model, "dataset": plan.zoo_of(config, model["dataset"])}
        fitted_by = model_sources()[source].fitted_by
        records += [_cost(fitted_by, of_zoo, model=model)] if fitted_by else []
        if source != "samples":
            records += [_cost("import_logits" if source == "logits" else "extract_logits", model)]
        for measure in plan.measures_of(config, audit):
            step = "import_samples" if source == "samples" else plan.step_of(config, measure)
            records += [_cost(step, model, measure=measure)]
        mapper = plan.projection_of(config, audit)
        records += [_cost("project_attributes", model, folder=mapper)] if mapper else []
    return records


def _cost(step, place, *, model=None, measure=None, folder=None):
    # As the job's log: in a folder named after the measure, or after what else tells its jobs apart.
    folder = folder or measure
    path = f"results/costs/{step}/{f'{folder}/' if folder else ''}{MODEL.format(**place)}.json"
    return {"step": step, **(model or place), "measure": measure, "path": path}


def audit_results(config, audit):
    """Every file of results/audits/<audit>/: naming them all heals the loss of any of them."""
    tables = ["class_scores", "model_summary", "vulnerability", "class_pairs", "costs"]
    tables += CONFUSIONS
    tables += ["calibration"] if plan.calibrated_measure(config, audit) else []
    tables += ["sensitivity"] if plan.has_kind(config, audit, "great") else []
    tables += [*COMPARISONS, *measure_tables(config, audit)]
    names = [f"{table}.{extension}" for table in tables for extension in ("parquet", "csv")]
    names += ["config.yaml", "comparison.json"]
    names += ["models.json", "verdict.json", "figures", "report.html", "dashboard.html"]
    return [f"results/audits/{audit}/{name}" for name in names]


# What a target of the Snakefile names, beside its own file, is every file that this one stands on: a step that fails
# loses its output, and what stands on a file that is gone must not count as up to date.


def logit_results(config, audit):
    """Checked logits of an audit, every file that they stand on, and the checks of pinned digests."""
    models = plan.models_of(config, audit)
    datasets = plan.datasets_of(config, audit)
    files = [f"results/datasets/{name}.json" for name in datasets] + pin_checks(config, audit)
    made = [name for name in datasets if config["datasets"][name]["source"] == "generated"]
    files += [f"results/generated/{name}.{extension}" for name in made for extension in ("npz", "json")]
    files += fetched_manifests(config, audit)
    fitted = [model for model in models if plan.entry_of(config, **model)["source"] in plan.FITTED]
    files += [checkpoint_file(config, **model, extension=end) for model in fitted for end in ("safetensors", "json")]
    with_logits = [model for model in models if plan.has_logits(config, **model)]
    files += [f"results/logits/{MODEL.format(**model)}.parquet" for model in with_logits]
    return files + check_files(config, audit)


def sample_results(config, audit):
    """Values per sample of an audit, and every file that they stand on."""
    attributes = attributes_table(config, audit)
    return logit_results(config, audit) + sample_files(config, audit) + ([attributes] if attributes else [])


def verdict_results(config, audit):
    """Verdict of an audit, and every file that it stands on: not the measures that its gate does not read."""
    own = [f"results/audits/{audit}/{name}.json" for name in ("models", "verdict")]
    attributes = gate_attributes(config, audit)
    judged = judged_sample_files(config, audit) + ([attributes] if attributes else [])
    return own + logit_results(config, audit) + judged


def model_results(config, audit):
    """Every file per model that an audit stands on."""
    return sample_results(config, audit) + sweep_files(config, audit) + projection_results(config, audit)


def report_results(config, audit):
    """Report of an audit, and every file that it stands on."""
    dashboard = f"results/audits/{audit}/dashboard.html"
    return [path for path in audit_results(config, audit) if path != dashboard] + model_results(config, audit)
