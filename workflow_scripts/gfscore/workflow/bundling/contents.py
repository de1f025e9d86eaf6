"""Which files a bundle of an audit holds, and where each of them stands.

Below a bundle everything stands as it does below results/; files of users stand where those of the workflow would.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.names import printable
from gfscore.workflow.plan import PlannedAudit
from gfscore.workflow.user_files import OptionalFile

STATEMENT = "statement.json"
SIGNATURE = f"{STATEMENT}.sig"

RESULTS = "results/"

MOST_FILES = 100_000

WHOLE, LARGEST = (".json", ".yaml", ".html", ".csv"), 1 << 30
"""Endings of files that are read as a whole, and the most bytes that such a file may have."""

Files = dict[str, str]
"""Names of files below a bundle, and where they come from: paths from the folder of results/, or of the user."""


def name_of(path: str) -> str:
    """Name below a bundle of a path below results/."""
    return path.removeprefix(RESULTS)


def files_of_audit(audit: PlannedAudit) -> Files:
    """The files that every bundle of an audit holds: its results, and the values per sample that they rest on."""
    paths = [path for path in audit.audit_results() if not path.endswith("/figures")]
    paths += audit.sample_files(audit.measures.values())
    for inputs in inputs_of_tables(audit).values():
        paths += [inputs] if isinstance(inputs, str) else inputs
    return {name_of(path): path for path in paths}


def inputs_of_tables(audit: PlannedAudit) -> dict[str, OptionalFile]:
    """What the tables of an audit are made of besides values per sample, by the names of the inputs of its step."""
    return {
        "selection": f"{audit.folder}/models.json",
        "configuration": f"{audit.folder}/config.yaml",
        "scores": f"results/scores/{audit.name}.parquet",
        "sweeps": f"results/sweeps/{audit.name}.parquet",
        "manifest": audit.dataset.manifest,
        "dataset": audit.dataset.samples,
        "generator": audit.dataset.generator_manifest,
        "checkpoints": audit.fetched_manifests(),
        "attributes": audit.attributes_table(),
        "manifests": audit.trained_manifests(),
        "mappers": [mapper.manifest for mapper in audit.mappers],
        "pictures": [mapper.pictures for mapper in audit.mappers],
        "projections": audit.projection_files(),
        **audit.task_files(),
    }


def cost_files(audit: PlannedAudit) -> Files:
    """Records of what its jobs cost; records that are missing are missing in the table as well."""
    paths = [record["path"] for record in audit.cost_records()]
    return {name_of(path): path for path in paths}


def logit_files(audit: PlannedAudit) -> Files:
    """Logits of every model that has any; files of users under the names that the workflow would give them."""
    files = {}
    for model in audit.models:
        if not model.has_logits:
            continue
        suffixes = PurePosixPath(model.logits).suffixes
        suffix = "".join(suffixes[-2:] if model.logits.endswith(".gz") else suffixes[-1:])
        files[f"logits/{model.name.path}{suffix}"] = model.logits
    return files


def network_files(audit: PlannedAudit, read: Callable[[str], Mapping[str, Any]]) -> dict[str, tuple[str, Files]]:
    """Of each model that is a file, by label: path of its manifest, and its files, the first the one to open.

    `read` returns the content of a manifest by its path below results/.
    """
    networks = {}
    for model in audit.models:
        if isinstance(model.weights, str):
            networks[model.label] = (model.manifest, {name_of(model.weights): model.weights})
        elif model.source.fetched:
            files = {}
            for file in read(model.manifest)["files"]:
                path = str(file["path"])
                files[f"checkpoints/{model.zoo_path}/{PurePosixPath(path).name}"] = path
            networks[model.label] = (model.manifest, files)
    return networks


def image_file(audit: PlannedAudit) -> Files:
    """The file of the images that an audit evaluates; nothing for images that come with a package, or in a folder."""
    path = audit.dataset.images
    if not path or not PurePosixPath(path).suffix:
        return {}
    return {f"images/{audit.dataset.name}{PurePosixPath(path).suffix}": path}


@dataclass(frozen=True)
class Bundle:
    """A folder that is taken for a bundle: its files by name, with their SHA-256, and the name of its audit.

    Only files of this list are ever opened: no name within one of them leads anywhere else.
    """

    folder: Path
    digests: Mapping[str, str]
    audit: str

    @classmethod
    def read(cls, folder: Path | str) -> Bundle:
        """Raises InputError for a folder that holds links or anything else than files, or not exactly one audit."""
        folder = Path(folder)
        if not folder.is_dir():
            raise InputError(f"{printable(folder)}: no such folder; name one that gfscore bundle made")
        names = list(_names_below(folder))
        audits = {parts[1] for name in names if len(parts := name.split("/")) > 2 and parts[0] == "audits"}
        if len(audits) != 1:
            raise InputError(f"{printable(folder)}: holds {len(audits)} audits, not one; ask for the bundle again")
        return cls(folder, {name: sha256_of_file(folder / name) for name in names}, audits.pop())

    def path(self, path: str) -> Path:
        """Where a file stands by its name, or by its path below results/; InputError where the bundle has none."""
        name = name_of(path)
        if name not in self.digests:
            raise InputError(f"{printable(name)}: missing; ask for the bundle again")
        return self.folder / name

    def json(self, path: str) -> dict[str, Any]:
        """Content of a JSON file."""
        return read_json(self.path(path))

    def of_audit(self, name: str) -> str:
        """Name of a file of the audit itself."""
        return f"audits/{self.audit}/{name}"


def _names_below(folder):
    # Of regular files alone, with slashes; anything else could lead out of the folder, or never end.
    waiting, count = [""], 0
    while waiting:
        start = waiting.pop()
        with os.scandir(folder / start) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name, count = f"{start}{entry.name}", count + 1
                if count > MOST_FILES:
                    raise InputError(f"{printable(folder)}: more than {MOST_FILES:,} files; no bundle has as many")
                if name.endswith(WHOLE) and entry.stat(follow_symlinks=False).st_size > LARGEST:
                    raise InputError(f"{printable(name)}: larger than {LARGEST:,} bytes; no such file of a bundle is")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield name
                else:
                    raise InputError(f"{printable(name)}: a link, or no file; a bundle holds files alone")
