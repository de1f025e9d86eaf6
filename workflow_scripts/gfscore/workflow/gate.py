"""The verdict on an audit as an exit status, for pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gfscore.audit.scores_file import ScoresFile
from gfscore.audit.verdicts.evidence import require_current
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, sha256_of_file
from gfscore.core.identity import MODEL, label_of
from gfscore.tables.parquet_tables import read_identity
from gfscore.workflow import plan
from gfscore.workflow.bundling.configurations import resolved_configuration

SAMPLES = "results/samples/"
"""Where the values per sample of each measure are."""


def current_verdict(audit: str) -> dict[str, Any]:
    """Contents of the verdict.json of an audit of results/.

    Raises InputError, naming the file, unless every file that it rests on, and every file of logits or samples of a
    user behind these, is as it was when the audit was judged: all are read and hashed.
    """
    folder = Path(f"results/audits/{audit}")
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such audit in this folder; run make audit first, or go to where its results are"
        )
    verdict = read_json(folder / "verdict.json")
    require_current(verdict, source=folder / "verdict.json")
    config = resolved_configuration(folder / "config.yaml", audit)
    scored = ScoresFile(f"results/scores/{audit}.parquet").identity["logits"]
    for model in plan.models_of(config, audit):
        entry = plan.entry_of(config, **model)
        if entry["source"] == "logits":
            known = scored[label_of(model)]["checkpoint_sha256"] if label_of(model) in scored else None
        elif entry["source"] == "samples":
            known = _digest_of_given_samples(verdict, model)
        else:
            continue
        path = Path(entry["path"])
        if known is not None and (not path.is_file() or sha256_of_file(path) != known):
            raise InputError(f"{path}: not the file that {audit} was judged on; run make audit, to judge anew")
    return verdict


def _digest_of_given_samples(verdict: dict[str, Any], model: dict[str, str]) -> str | None:
    end = f"/{MODEL.format(**model)}.parquet"
    file = next((file for file in verdict["made_from"] if file.startswith(SAMPLES) and file.endswith(end)), None)
    return file and read_identity(file)["checkpoint_sha256"]
