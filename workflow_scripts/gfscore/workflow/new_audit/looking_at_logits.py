"""Inspection of logits that were computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gfscore.core.errors import InputError, few
from gfscore.workflow.new_audit import audit_file
from gfscore.workflow.new_audit.class_order import check_logits, check_order
from gfscore.workflow.new_audit.found import FoundModel, Inspection, name_from
from gfscore.workflow.new_audit.logit_members import logits_and_labels
from gfscore.workflow.new_audit.request import Request


def inspect_logits(models: Sequence[FoundModel], request: Request) -> Inspection:
    """Look at files of logits and at their labels; InputError as gfscore.workflow.new_audit.looking.inspect."""
    for model in models:
        if not model.has_logits_only:
            raise InputError(f"{model.entry['path']}: a network beside files of logits; audit them apart")
    for option, value in (
        ("--architecture", request.architecture), ("--preprocessing", request.preprocessing), ("--size", request.size),
        ("--eps", request.eps), ("--norm", request.norm != "linf"), ("--trust-code", request.trust_code),
        ("--labels", request.labels if request.data else None),
    ):  # fmt: skip
        if value:
            raise InputError(
                f"{option}: logits have no use for it; leave it out, and order rows and columns as the labels"
            )
    data, read = logits_and_labels(models, request)
    true = data.images.labels.astype(np.int64)
    said, entries = [], {}
    for model, logits in zip(models, read, strict=True):
        check_logits(logits, true, where=model.entry["path"])
        remedy = "order the columns as the classes, or correct the labels"
        accuracy = check_order(logits, true, data.classes, where=model.entry["path"], remedy=remedy)
        words = f"{model.words}, {accuracy:.1%} of {len(true):,} right"
        said.append(f"model     {model.name}: {words}")
        entries[model.name] = (model.entry, [words])
    counts = [int(count) for count in data.counts]
    said += [
        f"labels    {data.words}, {len(true):,} samples, {len(counts)} classes ({few(list(data.classes))})",
        *audit_file.words_without_attacks("what attacks leave, logits cannot tell"),
    ]
    paths = dict.fromkeys(Path(model.entry["path"]) for model in models)
    first = next(iter(paths))
    # Of several files, that of their folder.
    name = request.name or name_from(first.name.split(".")[0] if len(paths) == 1 else first.resolve().parent.name)
    text = audit_file.audit_text(request.head(), name, data=data.entry, models=entries, measures={}, norm=request.norm)
    return Inspection(name, text, said)
