"""An audit as a Workflow Run RO-Crate: workflow, configuration, inputs, outputs and versions, to deposit and to cite.

Sources: RO-Crate 1.1, and the profiles Process Run Crate 0.5, Workflow Run Crate 0.5 and Workflow RO-Crate 1.0.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.names import without_queries, without_query
from gfscore.core.software import software, version_in_words

if TYPE_CHECKING:
    from rocrate.model.contextentity import ContextEntity
    from rocrate.model.entity import Entity
    from rocrate.rocrate import ROCrate

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
CONFIG = "config-of-this-run.json"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"
LICENSE = "https://spdx.org/licenses/MIT"
PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "pyarrow", "matplotlib", "rocrate")
URL_WITH_QUERY = re.compile(
    r"""
    https?://[^\s"'?]+\?      # up to the question mark
    (?:
        (?![,}\]]*(?:\s|$))   # a comma or bracket at the end of a word is YAML's
        [^\s"']
    )+
    """,
    re.VERBOSE,
)
"""A URL with a query in a text of YAML."""

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
    workflow: Sequence[str],
    config: Mapping[str, Any],
    inputs: Collection[str],
    outputs: Iterable[str | Path],
    audit: str,
    title: str,
    sentence: str,
    finished: float,
) -> None:
    """Write a crate: copies of the files, and ro-crate-metadata.json.

    The bytes depend on nothing but the arguments, the installed versions and the commit of this package. The query of
    a URL may hold an access key and is never written; `?...` stands in its place.

    Parameters
    ----------
    folder : path
        Folder of the crate.
    root : path
        Folder of the run, which all other paths are relative to; files have the same relative paths in the crate.
    workflow : sequence of path
        The Snakefile, then the files that it includes and reads.
    config : mapping
        Configuration of the run, plain data.
    inputs : collection of path
        Manifests with the digests of datasets and models that were measured.
    outputs : iterable of path
        Files and folders of the audit.
    audit, title : str
        Name and title of the audit.
    sentence : str
        Verdict of the audit, in a sentence.
    finished : float
        Time when the run ended, seconds since 1970.

    Raises
    ------
    InputError
        If a file holds a query that cannot be replaced; names the file and the remedy.
    """
    from rocrate.rocrate import ROCrate

    root = Path(root)
    ended = datetime.fromtimestamp(int(finished), tz=UTC).isoformat()
    crate = ROCrate(version="1.1")
    _describe(crate, name=f"Audit {audit}: {title}", sentence=sentence, ended=ended)
    main_workflow = _add_workflow(crate, root, workflow)

    text = json.dumps(without_queries(config), indent=2, ensure_ascii=False)
    properties = {"name": "Configuration of the run", "encodingFormat": "application/json"}
    configuration = crate.add_file(io.StringIO(f"{text}\n"), CONFIG, properties=properties)
    for path in inputs:
        _require_without_queries(path, read_json(root / path))
    objects = [configuration]
    objects += [_add_file(crate, root, Path(path)) for path in inputs]
    results = [_add_file(crate, root, path) for path in _files(root, outputs)]

    main_workflow["input"] = [_add_parameter(crate, "config", configuration, "Audits, models, measures and data")]
    parameters = []
    for entity in results:
        file = Path(entity.id)
        if file.suffix == ".parquet":
            parameters.append(_add_parameter(crate, file.stem, entity, file.name))
    main_workflow["output"] = parameters

    action = crate.add_action(
        main_workflow,
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


# ---- entities of the crate ----


def _describe(crate: ROCrate, *, name: str, sentence: str, ended: str) -> None:
    crate.metadata.extra_terms["sha256"] = SHA256
    crate.name = name
    crate.datePublished = ended
    crate.description = (
        f"Class-wise robustness and fairness of image classifiers. {sentence} Data and checkpoints keep the licences "
        "of their owners and are named by their digests."
    )
    crate.license = _add_entity(
        crate, LICENSE, "CreativeWork", name="MIT License", description="Licence of the workflow"
    )
    profiles = []
    for identifier, (profile, number) in PROFILES.items():
        profiles.append(_add_entity(crate, identifier, "CreativeWork", name=profile, version=number))
    crate.root_dataset["conformsTo"] = profiles


def _add_workflow(crate: ROCrate, root: Path, paths: Sequence[str]) -> Entity:
    snakefile = paths[0]
    main = crate.add_workflow(
        root / snakefile,
        snakefile,
        main=True,
        lang="snakemake",
        properties={"name": "gfscore", "version": version_in_words(software()), "license": {"@id": LICENSE}},
    )
    requirements = []
    for name, number in _versions().items():
        requirement = _add_entity(
            crate, f"#{name}", "SoftwareApplication", name=name, version=number, softwareVersion=number
        )
        requirements.append(requirement)
    main["softwareRequirements"] = requirements
    main["hasPart"] = [_add_file(crate, root, Path(path)) for path in paths[1:]]
    return main


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _add_parameter(crate: ROCrate, name: str, example: Entity, description: str) -> ContextEntity:
    parameter = _add_entity(
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


def _add_entity(crate: ROCrate, identifier: str, kind: str, **properties: object) -> ContextEntity:
    from rocrate.model.contextentity import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


# ---- files ----


def _add_file(crate: ROCrate, root: Path, path: Path) -> Entity:
    source: Path | io.StringIO = root / path
    if path == Path("config.yaml") or path.parent == Path("configs"):
        text = _text_without_queries(root / path, path)
        source = io.StringIO(text)
        size = len(text.encode())
        digest = hashlib.sha256(text.encode()).hexdigest()
    else:
        size = (root / path).stat().st_size
        digest = sha256_of_file(root / path)

    properties = {"name": path.name}
    if path.suffix in MEDIA_TYPES:
        properties["encodingFormat"] = MEDIA_TYPES[path.suffix]
    properties["contentSize"] = str(size)
    properties["sha256"] = digest
    return crate.add_file(source, path.as_posix(), properties=properties)


def _text_without_queries(source: Path, path: Path) -> str:
    # The configuration file as the user wrote it, comments included, with only the queries of its URLs replaced.
    original = source.read_text(encoding="utf-8")
    text = URL_WITH_QUERY.sub(lambda match: without_query(match[0]), original)
    # YAML has ways to write a URL that the pattern does not match, so the parsed entries are checked as well.
    try:
        entries = yaml.safe_load(text)
    except yaml.YAMLError:
        # The replacement broke the syntax.
        entries = yaml.safe_load(original)
    _require_without_queries(path, entries)
    return text


def _require_without_queries(path: Path | str, data: object) -> None:
    if data != without_queries(data):
        raise InputError(
            f"{path}: a url in it has a query (?...), which may hold a key and cannot be left out here; in config.yaml "
            "write each url plainly, on one line; a manifest is made anew when it is deleted"
        )


def _files(root: Path, paths: Iterable[str | Path]) -> Iterator[Path]:
    # The files of folders in a fixed order, without hidden ones, which Snakemake leaves as marks.
    for path in paths:
        full_path = root / path
        files = [full_path]
        if full_path.is_dir():
            files = sorted(full_path.rglob("*"))
        for file in files:
            if file.is_file() and not file.name.startswith("."):
                yield file.relative_to(root)
