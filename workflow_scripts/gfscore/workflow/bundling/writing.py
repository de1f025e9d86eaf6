"""Putting an audit into one folder that can be handed on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, umask
from gfscore.workflow.bundling.contents import (
    STATEMENT,
    Bundle,
    Files,
    cost_files,
    files_of_audit,
    image_file,
    logit_files,
    name_of,
    network_files,
)
from gfscore.workflow.bundling.parts import PARTS
from gfscore.workflow.bundling.signatures import sign
from gfscore.workflow.bundling.statement import write_statement
from gfscore.workflow.bundling.verifying import verify_bundle
from gfscore.workflow.plan import PlannedAudit, Run
from gfscore.workflow.resolved_file import resolved_configuration


def write_bundle(
    audit: str, target: Path | str, *, parts: Collection[str] = (), key: Path | str | None = None
) -> list[str]:
    """Copy an audit of results/ into a new folder, with `parts` of PARTS, and sign its statement with a key if given.

    The folder is there whole or not at all, and only if verify_bundle accepts it. Returns what of the parts the audit
    has none of, as sentences. Raises InputError, naming file and remedy, where the folder exists, a file of the audit
    is missing, its verdict rests on other files than there are now, or what it says does not follow from its values.
    """
    target, folder = Path(target), Path(f"results/audits/{audit}")
    if target.exists() or target.is_symlink():
        raise InputError(f"{target}: exists; remove it, or name another folder with --to")
    if not (folder / "config.yaml").is_file() or not (folder / "verdict.json").is_file():
        raise InputError(f"{folder}: no finished audit; run make audit in this folder first")
    config = resolved_configuration(folder / "config.yaml", audit)
    planned = Run(config).audits[audit]
    read_verdict(folder / "verdict.json").require_current(folder / "verdict.json")
    files = files_of_audit(planned)
    files |= {name: path for name, path in cost_files(planned).items() if Path(path).is_file()}
    found = {part: _files_of(part, planned) for part in parts}
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        for name, path in (files | {name: path for own in found.values() for name, path in own.items()}).items():
            if not Path(path).is_file():
                raise InputError(f"{path}: missing; run make audit to make it again")
            (beside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, beside / name)
        write_statement(Bundle.read(beside), config)
        if key:
            sign(beside / STATEMENT, key)
        faults = verify_bundle(beside).faults
        if faults:
            raise InputError(f"{folder}: {faults[0]}; run make audit, which makes again what is not as it was made")
        # mkdtemp makes folders for the owner only.
        beside.chmod(0o777 & ~umask())
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return [f"{part}: the audit has none that could be copied ({PARTS[part]})" for part in found if not found[part]]


def _files_of(part: str, audit: PlannedAudit) -> Files:
    if part == "logits":
        return logit_files(audit)
    if part == "images":
        return image_file(audit)
    if part == "figures":
        folder = Path(audit.folder, "figures")
        return {name_of(str(path)): str(path) for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
    files: Files = {}
    for manifest, own in network_files(audit, read_json).values():
        files |= {name_of(manifest): manifest, **own}
    return files
