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
from gfscore.core.identity import MODEL, label_of
from gfscore.core.names import printable
from gfscore.workflow import layout, plan, projection_layout

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


def files_of_audit(config: Mapping[str, Any], audit: str) -> Files:
    """The files that every bundle of an audit holds: what it found, and the values per sample that it rests on."""
    found = [path for path in layout.audit_results(config, audit) if not path.endswith("/figures")]
    found += layout.sample_files(config, audit)
    for paths in inputs_of_tables(config, audit).values():
        found += [paths] if isinstance(paths, str) else paths
    return {name_of(path): path for path in found}


def inputs_of_tables(config: Mapping[str, Any], audit: str) -> dict[str, Any]:
    """What the tables of an audit are made of besides values per sample, by the names that its step gives it."""
    return {
        "selection": f"results/audits/{audit}/models.json",
        "configuration": f"results/audits/{audit}/config.yaml",
        "scores": f"results/scores/{audit}.parquet",
        "sweeps": f"results/sweeps/{audit}.parquet",
        "manifest": layout.dataset_file(config, audit, extension="json"),
        "dataset": layout.dataset_file(config, audit, extension="parquet"),
        "generator": layout.generator_manifest(config, audit),
        "checkpoints": layout.fetched_manifests(config, audit),
        "attributes": layout.attributes_table(config, audit),
        "manifests": layout.trained_manifests(config, audit),
        "mappers": projection_layout.mapper_files(config, audit, extension="json"),
        "pictures": projection_layout.mapper_files(config, audit, extension="npz"),
        "projections": projection_layout.projection_files(config, audit),
        **projection_layout.task_files(config, audit),
    }


def cost_files(config: Mapping[str, Any], audit: str) -> Files:
    """Records of what its jobs cost; those that are missing are missing in the table as well."""
    paths = [record["path"] for record in layout.cost_records(config, audit)]
    return {name_of(path): path for path in paths}


def logit_files(config: Mapping[str, Any], audit: str) -> Files:
    """Logits of every model that has any; files of users under the names that the workflow would give them."""
    found = {}
    for model in plan.models_of(config, audit):
        if plan.has_logits(config, **model):
            path = plan.logits_file(config, **model)
            suffix = "".join(PurePosixPath(path).suffixes[-2:]) if path.endswith(".gz") else PurePosixPath(path).suffix
            found[f"logits/{MODEL.format(**model)}{suffix}"] = path
    return found


def network_files(
    config: Mapping[str, Any], audit: str, read: Callable[[str], Mapping[str, Any]]
) -> dict[str, tuple[str, Files]]:
    """Of each model that is a file, by label: path of its manifest, and its files, the first the one to open.

    `read` gives the content of a manifest by its path below results/.
    """
    zoo, found = plan.zoo_of(config, plan.dataset_of(config, audit)), {}
    for model in plan.models_of(config, audit):
        source, place = plan.entry_of(config, **model)["source"], f"{zoo}/{model['threat']}/{model['model']}"
        if source in plan.FITTED:
            path = f"results/trained/{place}.safetensors"
            found[label_of(model)] = (f"results/trained/{place}.json", {name_of(path): path})
        elif source in plan.FETCHED:
            manifest = f"results/checkpoints/{place}.json"
            paths = [str(file["path"]) for file in read(manifest)["files"]]
            files = {f"checkpoints/{place}/{PurePosixPath(path).name}": path for path in paths}
            found[label_of(model)] = (manifest, files)
    return found


def image_file(config: Mapping[str, Any], audit: str) -> Files:
    """The file of the images that an audit evaluates; nothing for those that come with a package, or in a folder."""
    dataset = plan.dataset_of(config, audit)
    path = layout.path_of_images(config, dataset)
    return {f"images/{dataset}{PurePosixPath(path).suffix}": path} if path and PurePosixPath(path).suffix else {}


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
