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
from dataclasses import dataclass
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
"""File of the crate that holds the configuration of the run."""

SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"
SPDX = "https://spdx.org/licenses"
COMPLETED = "http://schema.org/CompletedActionStatus"
SOURCE_CODE = ["File", "SoftwareSourceCode"]
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


@dataclass(frozen=True, kw_only=True)
class AuditRun:
    """A run of the workflow that made an audit.

    Parameters
    ----------
    audit, title : str
        Name and title of the audit.
    sentence : str
        Verdict of the audit, in a sentence.
    finished : float
        Time of the verdict, seconds since 1970.
    root : Path
        Folder of the run, which inputs and outputs are relative to; files have the same relative paths in the crate.
    workflow_folder : Path
        Folder of the workflow, relative to the folder of the run.
    workflow : sequence of str
        The Snakefile, then the files that it includes and reads, relative to the folder of the workflow.
    config : mapping
        Configuration of the run, plain data.
    inputs : collection of str
        Manifests, which hold the digests of the datasets and models.
    outputs : iterable of path
        Files and folders of the audit.
    steps : sequence of StepRun
        Executions of the steps that made inputs and outputs, in the order of their start.
    """

    audit: str
    title: str
    sentence: str
    finished: float
    root: Path
    workflow_folder: Path
    workflow: Sequence[str]
    config: Mapping[str, Any]
    inputs: Collection[str]
    outputs: Iterable[str | Path]
    steps: Sequence[StepRun]

    @property
    def snakefile(self) -> str:
        """The Snakefile, relative to the folder of the workflow."""
        return self.workflow[0]

    @property
    def scripts(self) -> set[str]:
        """Scripts that were executed as steps, relative to the folder of the workflow."""
        return {step.script for step in self.steps}

    def workflow_file(self, path: str) -> Path:
        """Where a file of the workflow lies."""
        return self.root / self.workflow_folder / path


def write_crate(folder: str | Path, run: AuditRun, settings: ExportSettings) -> None:
    """Write a crate: copies of the files, and ro-crate-metadata.json.

    The bytes depend on nothing but the arguments, the contents of the files that they name, the installed versions and
    the commit of this package. The query of a URL may hold an access key and is never written; `?...` stands in its
    place.

    Intermediate files of the run are named but not copied. Without records of its steps the crate does not claim the
    profile Provenance Run Crate.

    Parameters
    ----------
    folder : path
        Folder of the crate.
    run : AuditRun
    settings : ExportSettings
        Author, publisher and licence of the results, and the address at which the code is published. Where there is
        one, the files that were executed are those at the address, and their copies in the crate name it.

    Raises
    ------
    InputError
        If a file holds a query that cannot be replaced; names the file and the remedy. If the settings say where the
        code is published, and it differs from its commit.
    """
    from rocrate.rocrate import ROCrate

    code_address = _code_address(settings.code)
    crate = ROCrate(version="1.1")
    _describe(crate, run)
    author = _add_people(crate, settings)
    crate.license = _add_licence(crate, settings.licence)
    workflow = _add_workflow(crate, run, code_address)

    configuration = _add_configuration(crate, run)
    objects = [configuration]
    for path in run.inputs:
        _require_without_queries(path, read_json(run.root / path))
        objects.append(_add_file(crate, run.root, Path(path)))
    results = [_add_file(crate, run.root, path) for path in _files(run.root, run.outputs)]

    workflow["input"] = [_add_parameter(crate, "config", configuration, "Audits, models, measures and data")]
    parameters = []
    for entity in results:
        file = Path(entity.id)
        if file.suffix == ".parquet":
            parameters.append(_add_parameter(crate, file.stem, entity, file.name))
    workflow["output"] = parameters

    run_action = crate.add_action(
        workflow, identifier=f"#run-of-{run.audit}", object=objects, result=results, properties=_run_properties(run)
    )
    actions = [run_action]
    if run.steps:
        actions += _add_steps(crate, run, workflow, run_action, code_address)
    for action in actions:
        if author:
            action["agent"] = author
    crate.root_dataset["mentions"] = actions
    _compact(crate)
    crate.write(folder)


def _compact(crate: ROCrate) -> None:
    # RO-Crate asks for compacted JSON-LD, in which a property with one value has the value itself and not a list of it.
    for entity in crate.get_entities():
        for name, values in dict(entity.properties()).items():
            if not name.startswith("@") and isinstance(values, list) and len(values) == 1:
                entity[name] = values[0]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), tz=UTC).isoformat()


# ---- entities of the crate ----


def _add_configuration(crate: ROCrate, run: AuditRun) -> Entity:
    text = json.dumps(without_queries(run.config), indent=2, ensure_ascii=False)
    properties = {"name": "Configuration of the run", "encodingFormat": "application/json"}
    return crate.add_file(io.StringIO(f"{text}\n"), CONFIG, properties=properties)


def _run_properties(run: AuditRun) -> dict[str, str]:
    properties = {"name": f"Run of the audit {run.audit}", "description": run.sentence, "actionStatus": COMPLETED}
    if run.steps:
        properties["startTime"] = _time(run.steps[0].started)
    properties["endTime"] = _time(max([run.finished, *(step.ended for step in run.steps)]))
    return properties


def _describe(crate: ROCrate, run: AuditRun) -> None:
    crate.metadata.extra_terms["sha256"] = SHA256
    crate.name = f"Audit {run.audit}: {run.title}"
    crate.datePublished = _time(run.finished)
    crate.description = (
        f"Class-wise robustness and fairness of image classifiers. {run.sentence} Data and checkpoints keep the "
        "licences of their owners and are named by their digests."
    )
    profiles = WORKFLOW_PROFILES
    if run.steps:
        profiles = profiles | PROVENANCE_PROFILE
    conforms_to = []
    for identifier, (name, profile_version) in profiles.items():
        conforms_to.append(_add_entity(crate, identifier, "CreativeWork", name=name, version=profile_version))
    crate.root_dataset["conformsTo"] = conforms_to


def _add_people(crate: ROCrate, settings: ExportSettings) -> ContextEntity | None:
    # Returns the author; None where the settings name none.
    publisher = author = None
    if settings.publisher:
        publisher = _add_entity(
            crate, settings.publisher.url, "Organization", name=settings.publisher.name, url=settings.publisher.url
        )
        crate.publisher = publisher
    if settings.author:
        author = _add_entity(crate, settings.author.orcid or "#author", "Person", name=settings.author.name)
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


# ---- the workflow ----
#
# `code_address` is the address of the folder that holds the workflow's files on the web, with a / at its end. It is
# empty where the settings state none, so that it can be put before a path in either case.


def _code_address(template: str | None) -> str:
    if template is None:
        return ""
    this_code = software()
    if not this_code["commit"] or this_code["changed"] is not False:
        raise InputError(
            f"exports: code: {template} holds the code of a commit, which the code that runs here is not "
            f"({version_in_words(this_code)}); commit and publish it, or leave code out"
        )
    return template.replace("{commit}", str(this_code["commit"]))


def _add_workflow(crate: ROCrate, run: AuditRun, code_address: str) -> Entity:
    # The Snakefile as the crate's main entity, with what it requires, and the other files of the workflow.
    authors = _add_entity(
        crate, "#gfscore-authors", "Organization", name="The gfscore authors", url={"@id": "CITATION.cff"}
    )
    licence = _add_entity(
        crate, f"{SPDX}/MIT", "CreativeWork", name="MIT License", description="Licence of the workflow"
    )
    types = [*SOURCE_CODE, "ComputationalWorkflow"]
    if run.steps:
        types.append("HowTo")
    source: str | Path = run.workflow_file(run.snakefile)
    path_in_crate: str | None = run.snakefile
    if code_address:
        source = f"{code_address}{run.snakefile}"
        path_in_crate = None
    workflow = crate.add_workflow(
        source,
        path_in_crate,
        main=True,
        lang="snakemake",
        properties={
            "@type": types,
            **_executed_file(run, run.snakefile, code_address),
            "name": "gfscore",
            "conformsTo": {"@id": f"{BIOSCHEMAS}/ComputationalWorkflow/1.0-RELEASE"},
            "dateCreated": YEAR,
        },
    )
    workflow["creator"] = authors
    workflow["license"] = licence
    if crate.publisher:
        workflow["sdPublisher"] = crate.publisher
    requirements = [_add_software(crate, "python", "https://www.python.org", platform.python_version())]
    for name, address in PACKAGES.items():
        requirements.append(_add_software(crate, name, address, _installed_version(name)))
    workflow["softwareRequirements"] = requirements

    _add_workflow_files(crate, run, code_address)
    readme = crate.get("README.md")
    if readme:
        readme["about"] = crate.root_dataset
    return workflow


def _add_workflow_files(crate: ROCrate, run: AuditRun, code_address: str) -> None:
    # Copies of the files. Where the code is on the web, the Snakefile and the scripts there are described as what was
    # executed: they have entities of their own, whose addresses the copies name. Else the copies are described so.
    folder = run.workflow_file("")
    snakefile, *other_files = run.workflow
    # Without an address add_workflow has copied the Snakefile.
    if code_address:
        _add_file(crate, folder, Path(snakefile), url={"@id": f"{code_address}{snakefile}"})
    for path in other_files:
        if path not in run.scripts:
            _add_file(crate, folder, Path(path))
            continue
        properties = {"@type": [*SOURCE_CODE], **_executed_file(run, path, code_address)}
        if code_address:
            _add_file(crate, folder, Path(path), url=properties["url"])
            crate.add_file(f"{code_address}{path}", properties=properties)
        else:
            _add_file(crate, folder, Path(path), **properties)


def _executed_file(run: AuditRun, path: str, code_address: str) -> dict[str, Any]:
    # Properties of the Snakefile, or of a script that was executed as a step.
    properties: dict[str, Any] = {
        "name": Path(path).stem,
        "version": version_in_words(software()),
        "url": {"@id": f"{code_address}{path}"},
        "encodingFormat": MEDIA_TYPES.get(Path(path).suffix, OTHER_MEDIA_TYPE),
    }
    if code_address:
        properties["contentSize"] = str(run.workflow_file(path).stat().st_size)
        properties["sdDatePublished"] = _time(run.finished)
    return properties


def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        # The environment of a step need not hold Snakemake.
        return None


def _add_software(crate: ROCrate, name: str, address: str, installed_version: str | None) -> ContextEntity:
    entity = _add_entity(crate, address, "SoftwareApplication", name=name, url=address)
    if installed_version:
        entity["softwareVersion"] = installed_version
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


def _add_steps(crate: ROCrate, run: AuditRun, workflow: Entity, run_action: Entity, code_address: str) -> list[Entity]:
    """Describe the steps of the workflow, and every execution of one.

    Returns
    -------
    list of Entity
        Actions of the executions, then the action of the engine that called them.
    """
    workflow_paths = {os.path.normpath(run.workflow_folder / path) for path in run.workflow}
    how_to_steps: dict[str, ContextEntity] = {}
    executions, calls = [], []
    for step in run.steps:
        script = crate.get(f"{code_address}{step.script}")
        objects: list[Entity] = []
        for path in step.inputs:
            # Files of the workflow are no data to a step.
            if path not in workflow_paths:
                objects += _data_entities(crate, path)
        results: list[Entity] = []
        for path in step.outputs:
            results += _data_entities(crate, path)
        if step.script not in how_to_steps:
            source = crate.get(step.script).source
            how_to_steps[step.script] = _add_how_to_step(crate, script, source, position=len(how_to_steps) + 1)
        how_to_step = how_to_steps[step.script]
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

    workflow["step"] = list(how_to_steps.values())
    workflow["hasPart"] = [crate.get(f"{code_address}{script}") for script in how_to_steps]
    engine = _add_entity(crate, "#snakemake-run", "OrganizeAction", name="Run of Snakemake")
    engine["instrument"] = _add_software(crate, *ENGINE, _installed_version(ENGINE[0]))
    engine["object"] = calls
    engine["result"] = run_action
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
    # The entity of a file, or those of the files of a folder. A file that the crate does not hold gets an entity that
    # only names it; of a file outside of results, which may be the user's own, the folder is left out.
    in_crate = []
    crate_path = quote(path)
    for entity in crate.data_entities:
        if entity.id == crate_path or entity.id.startswith(f"{crate_path}/"):
            in_crate.append(entity)
    if in_crate:
        return in_crate
    if Path(path).parts[0] == "results":
        name = path
        identifier = f"#file-{quote(name)}"
    else:
        # With a digest of the path, so that files of one name in several folders have different entities.
        name = Path(path).name
        identifier = f"#file-{hashlib.sha256(path.encode()).hexdigest()[:8]}-{quote(name)}"
    entity = crate.get(identifier) or _add_entity(
        crate, identifier, "CreativeWork", name=name, description="A file of the run that is not in this crate"
    )
    return [entity]


# ---- files ----


def _add_file(crate: ROCrate, root: Path, path: Path, **properties: object) -> Entity:
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

    properties = {"name": path.name, **properties}
    properties["encodingFormat"] = MEDIA_TYPES.get(path.suffix, OTHER_MEDIA_TYPE)
    properties["contentSize"] = str(size)
    properties["sha256"] = digest
    return crate.add_file(source, path.as_posix(), properties=properties)


def _require_without_queries(path: Path | str, data: object) -> None:
    if data != without_queries(data):
        raise InputError(
            f"{path}: a url in it has a query (?...), which may hold a key and cannot be left out here; in files of "
            "configuration write each url plainly, on one line; a manifest is made anew when it is deleted"
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
