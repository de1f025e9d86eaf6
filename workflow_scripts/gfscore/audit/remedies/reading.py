"""Values of the original and the adjusted models of remedies on the judging half, from the files of their steps."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gfscore.audit.audit_files import AuditFiles
from gfscore.audit.remedies.gains import PairedOutcomes, ReferenceClasses
from gfscore.audit.remedies.tables import Choice, MeasuredRemedy
from gfscore.audit.step_params import RemedyParameters
from gfscore.audit.values import AuditSubject, AuditValues
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.measures import named_measures
from gfscore.networks.offset_files import OffsetFile
from gfscore.statistics.margins import predictions
from gfscore.tables.parquet_tables import read_identity, read_logits

FORWARD_PASSES = "steps"
"""Column of a samples table: forward passes of the attack on each sample."""


def read_remedies(
    parameters: Sequence[RemedyParameters],
    files: AuditFiles,
    values: AuditValues,
    *,
    label_error_rates: ArrayLike | None = None,
) -> list[MeasuredRemedy]:
    """Remedies of an audit with their values; a remedy of an excluded model is left out.

    Parameters
    ----------
    parameters : sequence of RemedyParameters
        Models and measure of each remedy.
    files : AuditFiles
        Files of all remedies in the order of `parameters`. Each remedy has two files of logits: of the original model
        and of the adjusted model with the largest strength. It has 1 + S samples tables: of the original model and of
        the adjusted models by ascending strength.
    values : AuditValues
        Values of the audit.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels; bounds allow for them.

    Raises
    ------
    InputError
        For a file that is missing, damaged or of another model, measure, dataset or offsets.
    """
    all_logits = iter(files.remedy_logits)
    all_samples = iter(files.remedy_samples)
    remedies = []
    for remedy, dataset, offsets in zip(parameters, files.remedy_datasets, files.remedy_offsets, strict=True):
        logits = [next(all_logits), next(all_logits)]
        samples = [next(all_samples) for _ in range(1 + len(remedy.adjusted))]
        if ModelName.from_columns(remedy.original).label in values.included_labels:
            measured = _read_remedy(
                remedy,
                values,
                dataset=dataset,
                offsets=offsets,
                logits=logits,
                samples=samples,
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
    largest_strength = max(adjusted)
    values = AuditValues(
        subject=AuditSubject(
            models=(original, *adjusted.values()), measures=named_measures({remedy.measure: remedy.entry})
        ),
        selection=audit_values.selection,
        dataset=dataset,
        samples=samples,
    )
    offset_file = OffsetFile.read(offsets)
    for strength, path in zip(adjusted, samples[1:], strict=True):
        _require_offsets(path, offset_file.words(strength), offsets)
    _require_offsets(logits[1], offset_file.words(largest_strength), offsets)

    original_values = values.sample_values(original, remedy.measure)
    adjusted_values = {strength: values.sample_values(model, remedy.measure) for strength, model in adjusted.items()}

    # Whether both models are right on the undisturbed samples; of equal images one counts.
    counted = values.listed.counted
    correct = []
    for model, path in zip((original, adjusted[largest_strength]), logits, strict=True):
        _, labels, logits_of_model = read_logits(path, expect=model.columns())
        correct.append((predictions(logits_of_model, labels) == labels)[counted])
    correct_before, correct_after = correct

    # Cost of the same measure in the audit: of the original model, on the whole dataset.
    audit_forwards = None
    if remedy.measure in audit_values.subject.measures:
        audited = ModelName(audit_values.included[0].dataset, original.threat, original.classifier)
        audit_forwards = int(audit_values.table(audited, remedy.measure)[FORWARD_PASSES].sum())

    first_round = offset_file.trail[0]
    chosen_round = offset_file.trail[offset_file.chosen]
    return MeasuredRemedy(
        original=original_values,
        adjusted=adjusted_values,
        clean=PairedOutcomes.decided(
            correct_before,
            correct_after,
            values.listed.labels[counted],
            classes=len(offset_file.offsets),
            label_error_rates=label_error_rates,
        ),
        choice=Choice(
            offsets=np.array(offset_file.offsets),
            reference=ReferenceClasses(before=np.array(first_round.values), after=np.array(chosen_round.values)),
            objective=offset_file.settings.objective,
            class_weights=offset_file.settings.class_weights,
            forwards=offset_file.forwards,
        ),
        audit_forwards=audit_forwards,
        label_error_rates=label_error_rates,
    )


def _require_offsets(path: Path | str, words: str, path_to_offsets: Path | str) -> None:
    # InputError for values with other offsets than those of the file, or without offsets.
    if read_identity(path).get("offsets") != words:
        raise InputError(
            f"{path}: not made with the offsets in {path_to_offsets} ({words}); make it again by adding -R {path} to "
            "the command"
        )
