"""What a verdict rests on: files by their digests, the dataset, and the models with what was measured of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file
from gfscore.core.identity import label_of

if TYPE_CHECKING:
    from gfscore.audit.inputs import AuditInputs


def evidence(inputs: AuditInputs, manifest: Mapping[str, Any], files: Iterable[Path | str]) -> dict[str, Any]:
    """Entries of verdict.json that name the data, models and files of the verdict, and its time.

    Takes AuditInputs, the manifest of their dataset and the `files` that were read. Each model has the digest of its
    checkpoint, or of the file that its logits or values came in, and of every measure the number of samples in its
    table and the digest of its settings (SHA-256 of their JSON with sorted keys).
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": {"name": manifest["dataset"], "digest": manifest["digest"], "rows": manifest["samples"]},
        "models": {label_of(model): _model(own) for model, own in inputs.by_model()},
        "made_from": digests_of(files),
    }


def _model(own):
    measures = {
        name: {
            "samples": int(own[name]["sample_id"].nunique()),
            "settings_sha256": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest(),
        }
        for name, settings in own.measures.items()
    }
    checkpoint = next((own.identity(name).get("checkpoint_sha256") for name in own), None)
    return {"checkpoint_sha256": checkpoint, "measures": measures}


def digests_of(files: Iterable[Path | str]) -> dict[str, str]:
    """SHA-256 (hex) of files by their paths."""
    return {str(file): sha256_of_file(file) for file in files}


def require_current(verdict: Mapping[str, Any], *, source: Path | str) -> None:
    """Raise InputError unless the files that a verdict, read from `source`, rests on are those that are there now."""
    if "made_from" not in verdict:
        raise InputError(f"{source}: of an earlier version; delete it and run the same command again, to judge anew")
    for file, digest in verdict["made_from"].items():
        if not Path(file).is_file() or sha256_of_file(file) != digest:
            raise InputError(
                f"{source}: rests on another {file} than is there now; delete it and run the same command again, to "
                "judge anew"
            )
