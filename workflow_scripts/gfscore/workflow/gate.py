"""The verdict on an audit as an exit status, for pipelines."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.samples import ScoresFile
from gfscore.audit.verdicts.verdict import Verdict, read_verdict
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.names import printable, shell_word, without_queries
from gfscore.core.settings import PlainSettings
from gfscore.measures import entries_of
from gfscore.networks.architecture_files import describe_network
from gfscore.tables.parquet_tables import read_attributes, read_identity
from gfscore.workflow.configuration import SHIPPED, resolved_configuration
from gfscore.workflow.plan import PlannedAudit, Run
from gfscore.workflow.replaced_files import fetched_models, reads_files
from gfscore.workflow.resolved_file import audit_folder, origins, read_planned_audit
from gfscore.workflow.user_files import STATEMENT

SAMPLES = "results/samples/"
"""Where the values per sample of each measure are."""


def current_verdict(audit: str) -> Verdict:
    """Verdict on an audit of results/.

    Parameters
    ----------
    audit : str
        Name of a finished audit in the current folder.

    Raises
    ------
    InputError
        Naming the file, unless every file that the verdict rests on is as it was when the audit was judged: the
        results, and the files of users behind them (networks, their code, images, attributes, generators, logits and
        values per sample). All are read and hashed. Also for rules, and settings of what they judge, that the audit's
        file states otherwise by now.
    """
    if Path(audit, STATEMENT).is_file():
        raise InputError(f"{printable(audit)}: a bundle; gfscore verify checks it, and says the verdict in it")
    folder = audit_folder(audit)
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such audit in this folder; run make audit first, or go to where its results are"
        )
    verdict = read_verdict(folder / "verdict.json")
    verdict.require_current(folder / "verdict.json")

    planned = read_planned_audit(folder / "config.yaml", audit)
    _require_same_question(planned, folder / "config.yaml")
    _require_supplied_values(planned, verdict)
    _require_networks(planned, verdict)
    _require_images(planned)
    _require_attributes(planned)
    if verdict.last_release is not None and planned.settings.last_release is not None:
        # The statement of its bundle names all other files; values were taken from them when they were verified.
        statement = f"{planned.settings.last_release.bundle}/{STATEMENT}"
        _require_digest(statement, verdict.last_release.statement_sha256, planned)
    return verdict


def judge_anew(audit: str) -> str:
    """What to do where an audit of results/ is not current: the command that runs its own configuration again."""
    files = origins(Path(f"results/audits/{audit}/config.yaml").read_text(encoding="utf-8")).files
    if files == [SHIPPED]:
        return "run make audit, to judge anew"
    if len(files) == 1:
        return f"run make audit CONFIG={shell_word(files[0])}, to judge anew"
    return f"run snakemake with --configfile {' '.join(map(shell_word, files))}, to judge anew"


# ---- the question: rules, data, models, measures ----


def _require_same_question(audit: PlannedAudit, path: Path) -> None:
    origin = origins(path.read_text(encoding="utf-8"))
    for file in origin.files:
        if not Path(file).is_file():
            print(f"{file}: not there any more, so what it states was not compared with the verdict")
            return

    try:
        resolution = resolved_configuration(origin.files, {**origin.overrides, "run": [audit.name]}, thorough=False)
    except InputError as error:
        raise InputError(
            f"{error}\nSo the verdict on {audit.name} may rest on other rules; correct it, and {judge_anew(audit.name)}"
        ) from error
    before = dict(_values(_question(audit)))
    after = dict(_values(_question(Run(resolution.config).audits[audit.name])))
    for key_path in dict.fromkeys([*after, *before]):
        value, judged = after.get(key_path), before.get(key_path)
        if value != judged:
            raise InputError(
                f"{origin.files[-1]}: {key_path} is {_text(value)} by now, but {audit.name} was judged with "
                f"{_text(judged)}; {judge_anew(audit.name)}, or restore the file"
            )


def _question(audit: PlannedAudit) -> PlainSettings:
    # What the verdict depends on: no titles, and no measures that no rule judges.
    settings = audit.run.settings
    measures = entries_of(audit.judged_measures)
    training_data = {}
    for model in audit.models:
        for name in model.training_datasets:
            dataset = audit.run.datasets[name]
            training_data[name] = {"path": dataset.path, **dataset.image_settings()}
        if model.offsets:
            measures[model.offsets.measure.name] = model.offsets.measure.entry()
    return {
        "gate": audit.entry["gate"],
        "checks": settings.checks.model_dump(),
        "dataset": without_queries({"name": audit.dataset.name, **audit.dataset.entry}),
        "models": without_queries({model.label: model.entry for model in audit.models}),
        "training data": training_data,
        "last_release": audit.entry["last_release"],
        "measures": measures,
        "inference": settings.inference.model_dump(include={"precision", "search"}),
        "intervals": settings.intervals.model_dump(),
        "fp_lambda": settings.disparity.fp_lambda,
    }


def _values(data: object, key_path: str = "") -> Iterator[tuple[str, object]]:
    # Every value below mappings and lists with its place, "gate > 0 > at_least".
    items: Any
    if isinstance(data, Mapping):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    else:
        yield key_path, data
        return
    for key, value in items:
        yield from _values(value, f"{key_path} > {key}" if key_path else str(key))


def _text(value: object) -> str:
    return "not given" if value is None else repr(value)


# ---- files of users ----


def _require_supplied_values(audit: PlannedAudit, verdict: Verdict) -> None:
    # Logits and values per sample that users brought.
    scored = ScoresFile(f"results/scores/{audit.name}.parquet").identity["logits"]
    for model in audit.models:
        digest = None
        if model.source.name == "logits":
            digest = scored.get(model.label, {}).get("checkpoint_sha256")
        elif model.source.name == "samples":
            end = f"/{model.name.path}.parquet"
            tables = [file for file in verdict.made_from if file.startswith(SAMPLES) and file.endswith(end)]
            if tables:
                digest = str(read_identity(tables[0])["checkpoint_sha256"])
        # Excluded models have no values.
        if digest is not None:
            _require_digest(str(model.path), digest, audit)


def _require_networks(audit: PlannedAudit, verdict: Verdict) -> None:
    for manifest, model in fetched_models([audit]).items():
        if manifest not in verdict.made_from:
            raise InputError(f"{manifest}: not among what {audit.name} was judged on; {judge_anew(audit.name)}")
        checkpoint = read_json(manifest)
        remedy = judge_anew(audit.name)
        if model.is_downloaded:
            remedy = f'download it again by adding ARGS="-R {manifest}" to make audit'
        for file in checkpoint["files"]:
            _require_digest(file["path"], file["sha256"], audit, missing=f"put it back, or {remedy}")

        recorded = _code_digests(checkpoint)
        present = _code_digests(describe_network(checkpoint["architecture"])) if recorded else {}
        for path in sorted(recorded.keys() | present.keys()):
            if recorded.get(path) != present.get(path):
                raise InputError(f"{path}: not the code that {audit.name} was judged on; {judge_anew(audit.name)}")

    for model in audit.models:
        judged = verdict.models.get(model.label)
        if judged and isinstance(model.weights, str):
            remedy = f"delete it and {judge_anew(audit.name)}"
            _require_digest(model.weights, str(judged.checkpoint_sha256), audit, remedy=remedy)


def _code_digests(description: Mapping[str, Any]) -> dict[str, str]:
    # SHA-256 of the files of a network's code, by path.
    return {file["path"]: file["sha256"] for file in description.get("architecture_files", [])}


def _require_images(audit: PlannedAudit) -> None:
    # Imported late: a gate on logits alone opens no image.
    from gfscore.images.manifests import open_and_compare

    for task in audit.tasks:
        if reads_files(read_json(task.manifest)):
            _, changed = open_and_compare(task.manifest)
            if changed is not None:
                raise InputError(f"{changed}: not the images that {audit.name} was judged on; {judge_anew(audit.name)}")

    manifest = audit.dataset.generator_manifest
    if isinstance(manifest, str):
        generator = read_json(manifest).get("generator")
        if isinstance(generator, dict) and "path" in generator:
            _require_digest(generator["path"], generator["sha256"], audit)


def _require_attributes(audit: PlannedAudit) -> None:
    # Of rules about groups alone: their file has no digest in results/, so its values are read again.
    table = audit.judged_attributes()
    if not isinstance(table, str):
        return
    # Imported late: a gate on logits alone opens no image.
    from gfscore.images.attribute_values import Dataset, attributes_of

    settings = audit.dataset.entry["attributes"]
    dataset = Dataset.open(f"results/datasets/{audit.dataset.name}.json")
    reference = None
    if audit.dataset.reference_dataset:
        reference = Dataset.open(f"results/datasets/{audit.dataset.reference_dataset}.json")
    frame = attributes_of(settings, dataset, reference).frame
    stored, _ = read_attributes(table)
    if not frame.equals(stored[list(frame.columns)].astype(object)):
        path = settings.get("path") or table
        raise InputError(f"{path}: not the attributes that {audit.name} was judged on; {judge_anew(audit.name)}")


def _require_digest(path: str, digest: str, audit: PlannedAudit, *, remedy: str = "", missing: str = "") -> None:
    # `remedy` for another file at the path, `missing` for none; judging anew is the usual one.
    try:
        same = sha256_of_file(path) == digest
    except OSError as error:
        raise InputError(
            f"{path}: {audit.name} was judged on it, and it cannot be read ({error.strerror}); "
            f"{missing or f'put it back, or {judge_anew(audit.name)}'}"
        ) from error
    if not same:
        raise InputError(f"{path}: not the file that {audit.name} was judged on; {remedy or judge_anew(audit.name)}")
