"""The values per sample of an earlier release, from its bundle, for what the gate of a later one compares with it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gfscore.audit.audit_changes import COST_ONLY, different_settings
from gfscore.audit.values import AuditSubject, AuditValues, SampleValues
from gfscore.audit.verdicts.verdict import ReleaseSource, read_verdict
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.identity import ModelName
from gfscore.core.names import printable
from gfscore.core.software import software, version_in_words
from gfscore.measures import NamedMeasure
from gfscore.workflow import audit_steps
from gfscore.workflow.bundling.bundles import verify_bundle
from gfscore.workflow.bundling.contents import Bundle, name_of
from gfscore.workflow.plan import PlannedAudit
from gfscore.workflow.resolved_file import read_planned_audit
from gfscore.workflow.user_files import STATEMENT

IRRELEVANT = (*COST_ONLY, "subset")
"""Settings of a measure in which two releases may differ: samples that only one has measured are left out."""


def values_below(folder: Path | str, audit: PlannedAudit) -> AuditValues:
    """Values per sample of an audit from a folder in which everything stands as below results/, which a bundle is."""
    folder = Path(folder)
    return AuditValues(
        subject=AuditSubject.parse(audit_steps.subject(audit)),
        selection=folder / name_of(f"{audit.folder}/models.json"),
        dataset=folder / name_of(audit.dataset.samples),
        scores=folder / name_of(f"results/scores/{audit.name}.parquet"),
        samples=[folder / name_of(path) for path in audit.sample_files(audit.measures)],
    )


def values_for(
    folder: Path | str,
    *,
    models: Sequence[ModelName],
    measures: Sequence[NamedMeasure],
    dataset_digest: str,
    classes: Sequence[str],
    model: str | None,
) -> tuple[list[SampleValues], ReleaseSource]:
    """Values of an earlier release that models of a later one are compared with, under the names of the later models.

    Parameters
    ----------
    folder : path
        Bundle of the earlier release.
    models : sequence of ModelName
        Models of the later one.
    measures : sequence of NamedMeasure
        Measures that are compared.
    dataset_digest : str
        Digest of the data of the later one.
    classes : sequence of str
        Names of its classes.
    model : str or None
        Model of the earlier release, "threat/name", that all are compared with.

    Raises
    ------
    InputError
        With the remedy, for a bundle that does not verify, and one of other data, classes or settings of a measure,
        or without a measure or a model.
    """
    where = printable(folder)
    faults = verify_bundle(folder).faults
    if faults:
        raise InputError(f"{where}: not a bundle to compare with: {faults[0]}; {_remedy(folder)}")
    bundle = Bundle.read(folder)
    audit = read_planned_audit(bundle.audit_path("config.yaml"), bundle.audit)
    manifest = bundle.json(audit.dataset.manifest)
    if manifest["digest"] != dataset_digest or list(manifest["classes"]) != list(classes):
        raise InputError(
            f"{where}: an audit of other data: {printable(manifest['dataset'])} in it has the digest "
            f"{manifest['digest']} and {len(manifest['classes'])} classes, these have {dataset_digest} and "
            f"{len(classes)}; audit the last release on the present data, and bundle that"
        )

    remedy = "audit the last release with the present settings, and bundle that"
    for measure in measures:
        if measure.name not in audit.measures:
            raise InputError(f"{where}: holds no {measure.name}, but {', '.join(audit.measures)}; {remedy}")
        before, after = audit.measures[measure.name].entry(), measure.entry()
        different = different_settings(before, after, irrelevant=IRRELEVANT)
        if different:
            key = different[0]
            fault = f"{measure.name} has {key} {before.get(key)!r} in it, and {after.get(key)!r} here"
            raise InputError(f"{where}: {fault}; {remedy}")

    values = values_below(bundle.folder, audit)
    pairs = compared_models(models, values.included, model=model, where=where)

    result = []
    for later, earlier in pairs.items():
        for measure in measures:
            result.append(replace(values.sample_values(earlier, measure.name), model=later, measure=measure))
    verdict = read_verdict(bundle.audit_path("verdict.json"))
    source = ReleaseSource(
        audit=bundle.audit,
        statement_sha256=bundle.digests[STATEMENT],
        judged=verdict.time,
        version=version_in_words(verdict.software),
        models={later.label: earlier.label for later, earlier in pairs.items()},
    )
    return result, source


def compared_models(
    models: Sequence[ModelName], earlier: Sequence[ModelName], *, model: str | None, where: str
) -> dict[ModelName, ModelName]:
    """Model of an earlier audit that each model of a later one is compared with.

    That is the one called `model`, "threat/name", where it is given; else the one of the same name; else, where each
    audit has a single model, that one.

    Raises
    ------
    InputError
        Naming `where` and the remedy, for a model without a counterpart.
    """
    by_label = {name.label: name for name in earlier}
    remedy = "name one of them as `model` of last_release"
    if model is not None:
        if model not in by_label:
            raise InputError(f"{where}: {unknown_name('model of the last release', model, by_label)}")
        return dict.fromkeys(models, by_label[model])
    pairs = same_models(models, earlier)
    for later in models:
        if later not in pairs:
            raise InputError(f"{where}: holds no {later.label}, but {', '.join(sorted(by_label))}; {remedy}")
    return pairs


def same_models(models: Sequence[ModelName], earlier: Sequence[ModelName]) -> dict[ModelName, ModelName]:
    """Model of an earlier audit by model of a later one: of the same name, or the only model of each audit."""
    if len(models) == len(earlier) == 1:
        return {models[0]: earlier[0]}
    by_label = {model.label: model for model in earlier}
    return {model: by_label[model.label] for model in models if model.label in by_label}


def _remedy(folder: Path | str) -> str:
    # Another version may write other tables, which this one cannot make again.
    try:
        bundle = Bundle.read(folder)
        judged_by = read_verdict(bundle.audit_path("verdict.json")).software
    except InputError:
        return "name a folder that gfscore bundle made"
    if judged_by != software():
        versions = f"it is of {version_in_words(judged_by)}, this is {version_in_words(software())}"
        return f"{versions}: audit the last release with this version, and bundle that"
    return "take the bundle from where it was handed out"
