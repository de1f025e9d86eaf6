"""Values of remedies from the files of their steps: original and adjusted models on the judging half."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.remedies.gains import PairedOutcomes, ReferenceClasses
from gfscore.audit.remedies.tables import Choice, MeasuredRemedy
from gfscore.audit.settings import RemedyParameters
from gfscore.audit.values import AuditSubject, AuditValues
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.networks.offset_files import OffsetFile
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_identity, read_logits

PASSES = "steps"
"""Column of samples under attack with the forward passes that each took."""


def read_remedies(
    parameters: Sequence[RemedyParameters],
    files: AuditFiles,
    values: AuditValues,
    *,
    label_error_rates: ArrayLike | None = None,
) -> list[MeasuredRemedy]:
    """Remedies of an audit, of the models that take part in it.

    Parameters
    ----------
    parameters : sequence of RemedyParameters
        Models and measure of each remedy.
    files : AuditFiles
        Of each remedy, one after the other: logits of the original and of the adjusted model of the largest strength,
        samples tables of the original and of the adjusted models by ascending strength.
    values : AuditValues
        Values of the audit.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels that bounds allow for.

    Raises
    ------
    InputError
        For a file that is missing, damaged or of another model, measure, dataset or offsets.
    """
    logits = iter(files.remedy_logits)
    samples = iter(files.remedy_samples)
    remedies = []
    for place, remedy in enumerate(parameters):
        logits_of_remedy = [next(logits), next(logits)]
        samples_of_remedy = [next(samples) for _ in range(1 + len(remedy.adjusted))]
        if ModelName.from_columns(remedy.original).label in values.included_labels:
            measured = _read_remedy(
                remedy,
                values,
                dataset=files.remedy_datasets[place],
                offsets=files.remedy_offsets[place],
                logits=logits_of_remedy,
                samples=samples_of_remedy,
                label_error_rates=label_error_rates,
            )
            remedies.append(measured)
    return remedies


def _read_remedy(
    remedy: RemedyParameters,
    audit_values: AuditValues,
    *,
    dataset: Path | str,
    offsets: Path | str,
    logits: Sequence[Path | str],
    samples: Sequence[Path | str],
    label_error_rates: ArrayLike | None,
) -> MeasuredRemedy:
    original = ModelName.from_columns(remedy.original)
    adjusted = {strength: ModelName.from_columns(columns) for strength, columns in sorted(remedy.adjusted.items())}
    values = AuditValues(
        subject=AuditSubject(
            models=(original, *adjusted.values()), measures=named_measures({remedy.measure: remedy.entry})
        ),
        selection=audit_values.selection,
        dataset=dataset,
        samples=samples,
    )
    chosen = OffsetFile.read(offsets)
    for strength, path in zip(adjusted, samples[1:], strict=True):
        _require_offsets(path, chosen.words(strength), offsets)
    _require_offsets(logits[1], chosen.words(max(adjusted)), offsets)
    original_values = values.sample_values(original, remedy.measure)
    adjusted_values = {strength: values.sample_values(model, remedy.measure) for strength, model in adjusted.items()}

    counted = values.listed.counted
    clean = []
    for model, path in zip((original, adjusted[max(adjusted)]), logits, strict=True):
        _, labels, logits_of_model = read_logits(path, expect=model.columns())
        clean.append((predictions(logits_of_model, labels) == labels)[counted])
    before, after = clean
    # Forward passes of the audit's own measurement of the original, on its whole dataset.
    audit_forwards = None
    if remedy.measure in audit_values.subject.measures:
        audited = ModelName(audit_values.included[0].dataset, original.threat, original.classifier)
        audit_forwards = int(audit_values.table(audited, remedy.measure)[PASSES].sum())

    return MeasuredRemedy(
        original=original_values,
        adjusted=adjusted_values,
        clean=PairedOutcomes.decided(
            before,
            after,
            values.listed.labels[counted],
            classes=len(chosen.offsets),
            label_error_rates=label_error_rates,
        ),
        choice=Choice(
            offsets=np.array(chosen.offsets),
            reference=ReferenceClasses(
                before=np.array(chosen.trail[0].values), after=np.array(chosen.trail[chosen.chosen].values)
            ),
            objective=chosen.settings.objective,
            class_weights=chosen.settings.class_weights,
            forwards=chosen.forwards,
        ),
        audit_forwards=audit_forwards,
        label_error_rates=label_error_rates,
    )


def _require_offsets(path: Path | str, words: str, path_to_offsets: Path | str) -> None:
    # Refuses values that were measured with other offsets than the file holds, or without offsets.
    if read_identity(path).get("offsets") != words:
        raise InputError(
            f"{path}: not of the offsets in {path_to_offsets} ({words}); make it again by adding -R {path} to the "
            "command"
        )
