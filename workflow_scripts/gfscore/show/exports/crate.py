"""An audit as a Workflow Run RO-Crate: workflow, configuration, inputs, outputs and versions, to deposit and to cite.

Sources: RO-Crate 1.1; Process Run Crate, Workflow Run Crate 0.5 and Workflow RO-Crate 1.0, the profiles it conforms to.
"""

import hashlib
import io
import json
import platform
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.names import without_queries, without_query
from gfscore.core.software import software, version_in_words

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
CONFIG = "config-of-this-run.json"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"
LICENSE = "https://spdx.org/licenses/MIT"
PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "pyarrow", "matplotlib", "rocrate")
QUERY = re.compile(r"""https?://[^\s"'?]+\?(?:(?![,}\]]*(?:\s|$))[^\s"'])+""")
"""Addresses with a query in a text, without the signs of YAML that may follow them."""

MEDIA_TYPES = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".yaml": "text/yaml",
}


def write_crate(
    folder: str | Path,
    *,
    root: str | Path,
    workflow: Iterable[str],
    config: Mapping[str, Any],
    inputs: Collection[str],
    outputs: Iterable[str | Path],
    audit: str,
    title: str,
    sentence: str,
    finished: float,
) -> None:
    """Write a crate into `folder`: copies of the files, and ro-crate-metadata.json.

    `root` is the folder that every path is relative to, in the crate as well; `workflow` are the Snakefile, first, and
    the files it is made of; `config` is the configuration of the run, plain data; `inputs` are manifests with the
    digests of what was measured; `outputs` files and folders of the audit. `finished` is the time of the run's end,
    seconds since 1970. The bytes depend on nothing else but the installed versions and the commit of this package.

    Queries of a `url` are not written, since they may hold keys. Raises InputError where they cannot be left out.
    """
    from rocrate.rocrate import ROCrate

    root = Path(root)
    ended = datetime.fromtimestamp(int(finished), tz=UTC).isoformat()
    crate = _crate(ROCrate(version="1.1"), f"Audit {audit}: {title}", sentence, ended)
    main = _workflow(crate, root, workflow)
    configured = crate.add_file(
        io.StringIO(json.dumps(without_queries(config), indent=2, ensure_ascii=False) + "\n"),
        CONFIG,
        properties={"name": "Configuration of the run", "encodingFormat": "application/json"},
    )
    for path in inputs:
        _require_without_queries(path, read_json(root / path))
    objects = [configured, *(_file(crate, root, path) for path in inputs)]
    results = [_file(crate, root, path) for path in _files(root, outputs)]
    main["input"] = [_parameter(crate, "config", configured, "Audits, models, measures and data")]
    main["output"] = [
        _parameter(crate, Path(entity.id).stem, entity, Path(entity.id).name)
        for entity in results
        if entity.id.endswith(".parquet")
    ]
    action = crate.add_action(
        main,
        identifier=f"#run-of-{audit}",
        object=objects,
        result=results,
        properties={
            "name": f"Run of the audit {audit}",
            "endTime": ended,
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "description": sentence,
        },
    )
    crate.root_dataset["mentions"] = [action]
    crate.write(folder)


def _crate(crate, name, sentence, ended):
    crate.metadata.extra_terms["sha256"] = SHA256
    crate.name, crate.datePublished = name, ended
    crate.description = (
        f"Class-wise robustness and fairness of image classifiers. {sentence} Data and checkpoints keep the licences "
        "of their owners and are named by their digests."
    )
    crate.license = _entity(crate, LICENSE, "CreativeWork", name="MIT License", description="Licence of the workflow")
    crate.root_dataset["conformsTo"] = [
        _entity(crate, identifier, "CreativeWork", name=name, version=number)
        for identifier, (name, number) in PROFILES.items()
    ]
    return crate


def _workflow(crate, root, paths):
    snakefile, *others = paths
    main = crate.add_workflow(
        root / snakefile,
        snakefile,
        main=True,
        lang="snakemake",
        properties={"name": "gfscore", "version": version_in_words(software()), "license": {"@id": LICENSE}},
    )
    main["softwareRequirements"] = [
        _entity(crate, f"#{name}", "SoftwareApplication", name=name, version=number, softwareVersion=number)
        for name, number in _versions().items()
    ]
    main["hasPart"] = [_file(crate, root, path) for path in others]
    return main


def _versions():
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _file(crate, root, path):
    path = Path(path)
    source, size, digest = root / path, (root / path).stat().st_size, sha256_of_file(root / path)
    if path == Path("config.yaml") or path.parent == Path("configs"):
        text = _without_keys(source, path)
        source, size, digest = io.StringIO(text), len(text.encode()), hashlib.sha256(text.encode()).hexdigest()
    media = {"encodingFormat": MEDIA_TYPES[path.suffix]} if path.suffix in MEDIA_TYPES else {}
    properties = {"name": path.name, **media, "contentSize": str(size), "sha256": digest}
    return crate.add_file(source, path.as_posix(), properties=properties)


def _without_keys(source, path):
    # As it is, comments and entries that the command line replaced included, but for what addresses may tell.
    text = QUERY.sub(lambda found: without_query(found[0]), source.read_text(encoding="utf-8"))
    # YAML has more ways to write an address than a pattern knows.
    try:
        shown = yaml.safe_load(text)
    except yaml.YAMLError:
        shown = yaml.safe_load(source.read_text(encoding="utf-8"))
    _require_without_queries(path, shown)
    return text


def _require_without_queries(path, data):
    if data != without_queries(data):
        raise InputError(
            f"{path}: a url in it has a query (?...), which may hold a key and cannot be left out here; in config.yaml "
            "write each url plainly, on one line; a manifest is made anew when it is deleted"
        )


def _files(root, paths):
    # Folders stand for every file in them, in a fixed order; Snakemake's own marks are left out.
    for path in map(Path, paths):
        inside = sorted((root / path).rglob("*")) if (root / path).is_dir() else [root / path]
        yield from (file.relative_to(root) for file in inside if file.is_file() and not file.name.startswith("."))


def _parameter(crate, name, example, description):
    parameter = _entity(
        crate,
        f"#parameter-{name}",
        "FormalParameter",
        name=name,
        additionalType="File",
        description=description,
        conformsTo={"@id": "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"},
        workExample={"@id": example.id},
    )
    example["exampleOfWork"] = {"@id": parameter.id}
    return parameter


def _entity(crate, identifier, kind, **properties):
    from rocrate.model.contextentity import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))
