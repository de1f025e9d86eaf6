"""The resolved configuration of an audit, as it lies beside the audit."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from gfscore.core.checksummed import require_checksum
from gfscore.core.errors import InputError
from gfscore.workflow.config_files import read_configuration
from gfscore.workflow.configuration import require_consistent
from gfscore.workflow.resolved_file import of_audit
from gfscore.workflow.resolving import resolve

LARGEST = 1 << 24
"""Bytes of a configuration that is read."""


def resolved_configuration(path: Path, audit: str) -> dict[str, Any]:
    """Configuration that results/audits/<audit>/config.yaml holds, every value written.

    Raises InputError for a file that write_configuration did not write: one that was edited, that leaves a value out,
    or holds more than the audit asks for. No file that it names is opened.
    """
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} bytes; no configuration is")
    require_checksum(path)
    asked = read_configuration([path], {})
    written: Any = deepcopy(asked)
    complete = written.get("run") == [audit] and [*written.get("audits", {})] == [audit]
    # Names of files, or patterns, in place of models would be looked for.
    if not complete or not all(_has(written["models"], name) for name in written["audits"][audit]["models"]):
        raise InputError(f"{path}: not the resolved configuration of the audit {audit!r}; ask for both again")
    resolution = resolve(asked)
    require_consistent(resolution, thorough=False)
    if of_audit(resolution.config, audit) != written:
        raise InputError(f"{path}: not every value of the audit stands there, or more than these; ask for it again")
    return resolution.config


def _has(models: Any, name: str) -> bool:
    for step in name.split("/"):
        if not isinstance(models, Mapping) or step not in models:
            return False
        models = models[step]
    return name.count("/") == 2
