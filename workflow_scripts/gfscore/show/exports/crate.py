"""An audit as a Provenance Run Crate, to deposit and to cite: workflow, steps, configuration, data and versions.

Sources: RO-Crate 1.1, and the profiles Process, Workflow and Provenance Run Crate 0.5 and Workflow RO-Crate 1.0.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.names import without_queries, without_query
from gfscore.core.software import software, version_in_words
from gfscore.show.exports import ExportSettings
from gfscore.show.exports.step_runs import StepRun

if TYPE_CHECKING:
    from rocrate.model.contextentity import ContextEntity
    from rocrate.model.entity import Entity
    from rocrate.rocrate import ROCrate

WORKFLOW_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
PROVENANCE_PROFILE = {"https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5")}
BIOSCHEMAS = "https://bioschemas.org/profiles"
CONFIG = "config-of-this-run.json"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"
SPDX = "https://spdx.org/licenses"
COMPLETED = "http://schema.org/CompletedActionStatus"
YEAR = "2026"
"""Year in which the workflow was created, as LICENSE says."""

PACKAGES = {
    "numpy": "https://numpy.org",
    "scipy": "https://scipy.org",
    "pandas": "https://pandas.pydata.org",
    "pyarrow": "https://arrow.apache.org",
    "matplotlib": "https://matplotlib.org",
    "rocrate": "https://github.com/ResearchObject/ro-crate-py",
}
ENGINE = ("snakemake", "https://snakemake.github.io")
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
OTHER_MEDIA_TYPE = "text/plain"
"""Media type of the workflow's other files, all of which are text."""


def write_crate(
    folder: str | Path,
    *,
    root: str | Path,
    workflow: Sequence[str],
    workflow_folder: Path,
    config: Mapping[str, Any],
    inputs: Collection[str],
    outputs: Iterable[str | Path],
    steps: Sequence[StepRun],
    stated: ExportSettings,
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
        Folder of the run, which inputs and outputs are relative to; files have the same relative paths in the crate.
    workflow : sequence of path
        The Snakefile, then the files that it includes and reads, relative to the folder of the workflow.
    workflow_folder : Path
        Folder of the workflow, relative to the folder of the run.
    config : mapping
        Configuration of the run, plain data.
    inputs : collection of path
        Manifests, which hold the digests of the datasets and models.
    outputs : iterable of path
        Files and folders of the audit.
    steps : sequence of StepRun
        Executions of the steps that made inputs and outputs, in the order of their start. Intermediate files are named
        but not copied. Without steps the crate does not claim the profile Provenance Run Crate.
    stated : ExportSettings
        Author, publisher and licence of the results, and the address at which the code is published. Where there is
        one, the files that were executed are those at the address, and their copies in the crate name it.
    audit, title : str
        Name and title of the audit.
    sentence : str
        Verdict of the audit, in a sentence.
    finished : float
        Time of the verdict, seconds since 1970.

    Raises
    ------
    InputError
        If a file holds a query that cannot be replaced; names the file and the remedy. If the settings say where the
        code is published, and it differs from its commit.
    """
    from rocrate.rocrate import ROCrate

    root = Path(root)
    published_code = _published_code(stated.code)
    crate = ROCrate(version="1.1")
    _describe(crate, name=f"Audit {audit}: {title}", sentence=sentence, published=_time(finished), steps=bool(steps))
    author = _add_people(crate, stated)
    crate.license = _add_licence(crate, stated.licence)
    main_workflow = _add_workflow(
        crate,
        root / workflow_folder,
        workflow,
        scripts={step.script for step in steps},
        published_code=published_code,
        published=_time(finished),
    )

    text = json.dumps(without_queries(config), indent=2, ensure_ascii=False)
    configuration_properties = {"name": "Configuration of the run", "encodingFormat": "application/json"}
    configuration = crate.add_file(io.StringIO(f"{text}\n"), CONFIG, properties=configuration_properties)
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

    run_properties = {"name": f"Run of the audit {audit}", "description": sentence, "actionStatus": COMPLETED}
    if steps:
        run_properties["startTime"] = _time(steps[0].started)
    run_properties["endTime"] = _time(max([finished, *(step.ended for step in steps)]))
    run = crate.add_action(
        main_workflow, identifier=f"#run-of-{audit}", object=objects, result=results, properties=run_properties
    )
    actions = [run]
    if steps:
        code = {os.path.normpath(workflow_folder / path) for path in workflow}
        actions += _add_steps(crate, main_workflow, run, steps, code=code, published_code=published_code)
    for action in actions:
        if author:
            action["agent"] = author
    crate.root_dataset["mentions"] = actions
    # A property with one value is no list in the form of JSON-LD that RO-Crate asks for.
    for entity in crate.get_entities():
        for name, values in dict(entity.properties()).items():
            if not name.startswith("@") and isinstance(values, list) and len(values) == 1:
                entity[name] = values[0]
    crate.write(folder)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), tz=UTC).isoformat()


# ---- entities of the crate ----


def _describe(crate: ROCrate, *, name: str, sentence: str, published: str, steps: bool) -> None:
    crate.metadata.extra_terms["sha256"] = SHA256
    crate.name = name
    crate.datePublished = published
    crate.description = (
        f"Class-wise robustness and fairness of image classifiers. {sentence} Data and checkpoints keep the licences "
        "of their owners and are named by their digests."
    )
    conforms_to = []
    for identifier, (profile, number) in (WORKFLOW_PROFILES | (PROVENANCE_PROFILE if steps else {})).items():
        conforms_to.append(_add_entity(crate, identifier, "CreativeWork", name=profile, version=number))
    crate.root_dataset["conformsTo"] = conforms_to


def _add_people(crate: ROCrate, stated: ExportSettings) -> ContextEntity | None:
    # The author, if stated.
    publisher = author = None
    if stated.publisher:
        publisher = _add_entity(
            crate, stated.publisher.url, "Organization", name=stated.publisher.name, url=stated.publisher.url
        )
        crate.publisher = publisher
    if stated.author:
        author = _add_entity(crate, stated.author.orcid or "#author", "Person", name=stated.author.name)
        if publisher:
            author["affiliation"] = publisher
        crate.root_dataset["author"] = author
    return author


def _add_licence(crate: ROCrate, identifier: str | None) -> ContextEntity:
    if identifier:
        return _add_entity(
            crate, f"{SPDX}/{identifier}", "CreativeWork", name=identifier, description="Licence of the results"
        )
    return _add_entity(
        crate,
        "#licence",
        "CreativeWork",
        name="None stated for the results; MIT License for the workflow",
        description="Who deposits the results states their licence.",
    )


def _published_code(address: str | None) -> str:
    # Address of the folder that holds this code on the web; empty where none is stated.
    if address is None:
        return ""
    made_by = software()
    if not made_by["commit"] or made_by["changed"] is not False:
        raise InputError(
            f"exports: code: {address} holds the code of a commit, which the code that runs here is not "
            f"({version_in_words(made_by)}); commit and publish it, or leave code out"
        )
    return address.replace("{commit}", str(made_by["commit"]))


def _add_workflow(
    crate: ROCrate,
    root: Path,
    paths: Sequence[str],
    *,
    scripts: Collection[str],
    published_code: str,
    published: str,
) -> Entity:
    # `scripts` are those whose executions are the steps of the run.
    snakefile = paths[0]
    authors = _add_entity(
        crate, "#gfscore-authors", "Organization", name="The gfscore authors", url={"@id": "CITATION.cff"}
    )
    licence = _add_entity(
        crate, f"{SPDX}/MIT", "CreativeWork", name="MIT License", description="Licence of the workflow"
    )
    executed: dict[str, dict[str, Any]] = {}
    for path in (snakefile, *scripts):
        executed[path] = {
            "name": Path(path).stem,
            "version": version_in_words(software()),
            "url": {"@id": f"{published_code}{path}"},
            "encodingFormat": MEDIA_TYPES.get(Path(path).suffix, OTHER_MEDIA_TYPE),
        }
        if published_code:
            executed[path] |= {"contentSize": str((root / path).stat().st_size), "sdDatePublished": published}

    main = crate.add_workflow(
        f"{published_code}{snakefile}" if published_code else root / snakefile,
        None if published_code else snakefile,
        main=True,
        lang="snakemake",
        properties={
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", *(["HowTo"] if scripts else [])],
            **executed[snakefile],
            "name": "gfscore",
            "conformsTo": {"@id": f"{BIOSCHEMAS}/ComputationalWorkflow/1.0-RELEASE"},
            "dateCreated": YEAR,
        },
    )
    main["creator"] = authors
    main["license"] = licence
    if crate.publisher:
        main["sdPublisher"] = crate.publisher
    requirements = [_add_software(crate, "python", "https://www.python.org", platform.python_version())]
    for name, address in PACKAGES.items():
        requirements.append(_add_software(crate, name, address, _installed(name)))
    main["softwareRequirements"] = requirements

    source_code = {"@type": ["File", "SoftwareSourceCode"]}
    for path in paths:
        if path not in executed:
            _add_file(crate, root, Path(path))
        elif published_code:
            # What was executed is the file on the web; the copy names its address.
            _add_file(crate, root, Path(path), url=executed[path]["url"])
            if path in scripts:
                crate.add_file(f"{published_code}{path}", properties={**source_code, **executed[path]})
        elif path in scripts:
            # Not the Snakefile, which add_workflow has added.
            _add_file(crate, root, Path(path), **source_code, **executed[path])
    readme = crate.get("README.md")
    if readme:
        readme["about"] = crate.root_dataset
    return main


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        # Snakemake itself, where a step runs in an environment of its own.
        return None


def _add_software(crate: ROCrate, name: str, address: str, number: str | None) -> ContextEntity:
    entity = _add_entity(crate, address, "SoftwareApplication", name=name, url=address)
    if number:
        entity["softwareVersion"] = number
    return entity


def _add_parameter(crate: ROCrate, name: str, example: Entity, description: str) -> ContextEntity:
    parameter = _add_entity(
        crate,
        f"#parameter-{name}",
        "FormalParameter",
        name=name,
        additionalType="File",
        description=description,
        conformsTo={"@id": f"{BIOSCHEMAS}/FormalParameter/1.0-RELEASE"},
        workExample={"@id": example.id},
    )
    example["exampleOfWork"] = {"@id": parameter.id}
    return parameter


def _add_entity(crate: ROCrate, identifier: str, kind: str, **properties: object) -> ContextEntity:
    from rocrate.model.contextentity import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


# ---- steps ----


def _add_steps(
    crate: ROCrate,
    workflow: Entity,
    run: Entity,
    steps: Sequence[StepRun],
    *,
    code: Collection[str],
    published_code: str,
) -> list[Entity]:
    """Describe the steps of the workflow, and every execution of one.

    Parameters
    ----------
    workflow, run : Entity
        The workflow, and the action that is its run.
    code : collection of str
        Files of the workflow, which are no data to a step.
    published_code : str
        Address of the folder that holds them on the web; empty where none is stated.

    Returns
    -------
    list of Entity
        Actions of the executions, then that of the engine that called them.
    """
    positions: dict[str, ContextEntity] = {}
    executions, calls = [], []
    for step in steps:
        script = crate.get(f"{published_code}{step.script}")
        objects: list[Entity] = []
        for path in step.inputs:
            if path not in code:
                objects += _data_entities(crate, path)
        results: list[Entity] = []
        for path in step.outputs:
            results += _data_entities(crate, path)
        if step.script not in positions:
            source = crate.get(step.script).source
            positions[step.script] = _add_how_to_step(crate, script, source, position=len(positions) + 1)
        how_to_step = positions[step.script]
        execution = crate.add_action(
            script,
            identifier=f"#execution-of-{quote(step.name)}",
            object=objects,
            result=results,
            properties={
                "name": step.name,
                "description": how_to_step["description"],
                "startTime": _time(step.started),
                "endTime": _time(step.ended),
                "actionStatus": COMPLETED,
            },
        )
        executions.append(execution)
        call = _add_entity(crate, f"#call-of-{quote(step.name)}", "ControlAction", name=f"Call of {step.name}")
        call["instrument"] = how_to_step
        call["object"] = execution
        calls.append(call)

    workflow["step"] = list(positions.values())
    workflow["hasPart"] = [crate.get(f"{published_code}{script}") for script in positions]
    engine = _add_entity(crate, "#snakemake-run", "OrganizeAction", name="Run of Snakemake")
    engine["instrument"] = _add_software(crate, *ENGINE, _installed(ENGINE[0]))
    engine["object"] = calls
    engine["result"] = run
    return [*executions, engine]


def _add_how_to_step(crate: ROCrate, script: Entity, source: Path, *, position: int) -> ContextEntity:
    name = source.stem
    documentation = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or name
    return _add_entity(
        crate,
        f"#step-{name}",
        "HowToStep",
        name=name,
        description=documentation.partition("\n")[0],
        position=str(position),
        workExample={"@id": script.id},
    )


def _data_entities(crate: ROCrate, path: str) -> list[Entity]:
    # A file, or the files of a folder. What is not in the crate is named; a file of the user without its folder.
    in_crate = []
    for entity in crate.data_entities:
        if entity.id == path or entity.id.startswith(f"{path}/"):
            in_crate.append(entity)
    if in_crate:
        return in_crate
    if Path(path).parts[0] == "results":
        name = path
        identifier = f"#file-{quote(name)}"
    else:
        # Files of one name in several folders are different files.
        name = Path(path).name
        identifier = f"#file-{hashlib.sha256(path.encode()).hexdigest()[:8]}-{quote(name)}"
    entity = crate.get(identifier) or _add_entity(
        crate, identifier, "CreativeWork", name=name, description="A file of the run that is not in this crate"
    )
    return [entity]


# ---- files ----


def _add_file(crate: ROCrate, root: Path, path: Path, **described: object) -> Entity:
    source: Path | io.StringIO = root / path
    if path == Path("config.yaml") or path.parent == Path("configs"):
        # As the user wrote it, comments included, with only the queries of its URLs replaced.
        original = (root / path).read_text(encoding="utf-8")
        text = URL_WITH_QUERY.sub(lambda match: without_query(match[0]), original)
        # YAML has ways to write a URL that the pattern does not match, so the parsed entries are checked as well.
        try:
            entries = yaml.safe_load(text)
        except yaml.YAMLError:
            # The replacement broke the syntax.
            entries = yaml.safe_load(original)
        _require_without_queries(path, entries)
        source = io.StringIO(text)
        size = len(text.encode())
        digest = hashlib.sha256(text.encode()).hexdigest()
    else:
        size = (root / path).stat().st_size
        digest = sha256_of_file(root / path)

    properties = {"name": path.name, **described}
    properties["encodingFormat"] = MEDIA_TYPES.get(path.suffix, OTHER_MEDIA_TYPE)
    properties["contentSize"] = str(size)
    properties["sha256"] = digest
    return crate.add_file(source, path.as_posix(), properties=properties)


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
