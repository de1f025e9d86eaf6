"""What a bundle of an audit holds, where each file stands, and the statement that names them all, with its signature.

Below a bundle everything stands as it does below results/; files of users stand where those of the workflow would. The
statement has the form of in-toto, which can be signed; everything in it follows from the files of the bundle, so that a
check makes it anew and compares. Signatures are those of SSH, whose program is everywhere, kept up, and needs no
network; keys in a token or an agent work as they do for logging in.

Sources: in-toto attestation framework, Statement v1; ssh-keygen(1), sections -Y sign and ALLOWED SIGNERS; OpenSSH
PROTOCOL.sshsig.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, refuse_non_finite, write_text
from gfscore.core.identity import label_of
from gfscore.core.mappings import of_distinct_keys, only
from gfscore.core.names import harmless, printable
from gfscore.core.settings import Record, first_fault
from gfscore.images.sources.labels import Labels
from gfscore.measures import entries_of
from gfscore.tables.parquet_tables import read_identity
from gfscore.workflow.audit_steps import job_records, table_inputs, verdict_inputs
from gfscore.workflow.plan import PlannedAudit
from gfscore.workflow.targets import audit_results
from gfscore.workflow.user_files import RESULTS, STATEMENT, OptionalFile

SIGNATURE = f"{STATEMENT}.sig"

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "tag:gfscore,2026:class-wise-audit/v1"
"""Identifies the form of the predicate; nothing is to be found there."""

NAMESPACE = "gfscore-audit"
"""What is signed: a signature made for anything else, of mail or of git, is refused."""

SHA256 = re.compile("[0-9a-f]{64}")

MOST_FILES = 100_000
"""Files that a bundle has at most."""

READ_AT_ONCE = (".json", ".yaml", ".html", ".csv")
"""Endings of files that are read as a whole."""

LARGEST_FILE = 1 << 30
"""Bytes of a file that is read as a whole."""

LARGEST = {STATEMENT: 1 << 26, SIGNATURE: 1 << 16}
"""Bytes of the statement and of its signature."""

Json = dict[str, Any]
"""Content of a JSON file, a manifest or statement: what it holds is not known before it is checked."""

Files = dict[str, str]
"""Names of files below a bundle, and where they come from: paths from the folder of results/, or of the user."""


def name_of(path: str) -> str:
    """Name below a bundle of a path below results/."""
    return path.removeprefix(RESULTS)


def named_files(paths: Iterable[str]) -> Files:
    """Paths below results/ by their names below a bundle."""
    return {name_of(path): path for path in paths}


# ---- files ----


def files_of_audit(audit: PlannedAudit) -> Files:
    """The files that every bundle of an audit holds: its results, and the values per sample that they rest on."""
    paths = [path for path in audit_results(audit) if not path.endswith("/figures")]
    paths += audit.sample_files(audit.measures)
    for inputs in inputs_of_tables(audit).values():
        paths += [inputs] if isinstance(inputs, str) else inputs
    return named_files(paths)


def inputs_of_tables(audit: PlannedAudit) -> dict[str, OptionalFile]:
    """Input files of tables, verdict and page besides values per sample, by the names of the steps' inputs."""
    # The attributes of all groups, not of those alone that a rule judges.
    return {
        **verdict_inputs(audit),
        **table_inputs(audit),
        "pictures": [mapper.pictures for mapper in audit.mappers],
    }


def cost_files(audit: PlannedAudit) -> Files:
    """Records of what its jobs cost; records that are missing are missing in the table as well."""
    return named_files(record.path for record in job_records(audit))


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


@dataclass(frozen=True)
class NetworkFiles:
    """Files of a model: path of its manifest below results/, and its files, the first the one to open."""

    manifest: str
    files: Files


def network_files(audit: PlannedAudit, read: Callable[[str], Json]) -> dict[str, NetworkFiles]:
    """Files of each model that is a file.

    Parameters
    ----------
    audit : PlannedAudit
    read : callable
        Content of a manifest by its path below results/.

    Returns
    -------
    dict
        NetworkFiles by the label of the model.
    """
    networks = {}
    for model in audit.models:
        if isinstance(model.weights, str):
            networks[model.label] = NetworkFiles(model.manifest, {name_of(model.weights): model.weights})
        elif model.network.source.fetched:
            files = {}
            for file in read(model.manifest)["files"]:
                path = str(file["path"])
                files[f"checkpoints/{model.network.zoo_path}/{PurePosixPath(path).name}"] = path
            networks[model.label] = NetworkFiles(model.manifest, files)
    return networks


def image_file(audit: PlannedAudit) -> Files:
    """The file of the images that an audit evaluates; nothing for images that come with a package, or in a folder."""
    path = audit.dataset.images
    settings = audit.dataset.settings
    # A table of images has a setting that names their folder.
    if not path or not PurePosixPath(path).suffix or isinstance(settings, Labels) or hasattr(settings, "images"):
        return {}
    return {f"images/{audit.dataset.name}{PurePosixPath(path).suffix}": path}


# ---- a bundle ----


@dataclass(frozen=True)
class Bundle:
    """A folder that is taken for a bundle.

    Only files of `digests` are ever opened: no name within one of them leads anywhere else.

    Parameters
    ----------
    folder : Path
    digests : mapping
        SHA-256 (hex) of its files by name.
    audit : str
        Name of the audit.
    """

    folder: Path
    digests: Mapping[str, str]
    audit: str

    @classmethod
    def read(cls, folder: Path | str) -> Bundle:
        """Bundle of a folder; InputError for one that holds links, or anything but files, or not exactly one audit."""
        folder = Path(folder)
        if not folder.is_dir():
            raise InputError(f"{printable(folder)}: no such folder; name one that gfscore bundle made")
        names = list(_names_below(folder))
        audits = set()
        for name in names:
            steps = name.split("/")
            if len(steps) > 2 and steps[0] == "audits":
                audits.add(steps[1])
        if not audits:
            raise InputError(f"{printable(folder)}: no bundle; name the folder that holds {STATEMENT} and audits/")
        if len(audits) != 1:
            raise InputError(f"{printable(folder)}: holds {len(audits)} audits, not one; ask for the bundle again")
        digests = {name: sha256_of_file(folder / name) for name in names}
        return cls(folder, digests, audits.pop())

    def path(self, path: str) -> Path:
        """Where a file stands by its name, or by its path below results/; InputError where the bundle has none."""
        name = name_of(path)
        if name not in self.digests:
            raise InputError(f"{printable(name)}: missing; ask for the bundle again")
        return self.folder / name

    def json(self, path: str) -> Json:
        """Content of a JSON file."""
        return read_json(self.path(path))

    def of_audit(self, name: str) -> str:
        """Name of a file of the audit itself."""
        return f"audits/{self.audit}/{name}"

    def audit_path(self, name: str) -> Path:
        """Where a file of the audit itself stands."""
        return self.path(self.of_audit(name))

    def stated_digests(self) -> dict[str, str]:
        """Digests of the files that the statement names: all but itself and its signature."""
        digests = dict(self.digests)
        for name in (STATEMENT, SIGNATURE):
            digests.pop(name, None)
        return digests


def _names_below(folder: Path) -> Iterator[str]:
    # Names of regular files only, with slashes; anything else could lead out of the folder, or never end.
    waiting = [""]
    count = 0
    while waiting:
        start = waiting.pop()
        with os.scandir(folder / start) as entries:
            sorted_entries = sorted(entries, key=lambda entry: entry.name)
            if not sorted_entries:
                raise InputError(f"{printable(start) or printable(folder)}: an empty folder; no bundle has one")
            for entry in sorted_entries:
                name = f"{start}{entry.name}"
                count += 1
                if count > MOST_FILES:
                    raise InputError(f"{printable(folder)}: more than {MOST_FILES:,} files; no bundle has as many")
                largest = LARGEST.get(name, LARGEST_FILE if name.endswith(READ_AT_ONCE) else math.inf)
                if entry.stat(follow_symlinks=False).st_size > largest:
                    raise InputError(f"{printable(name)}: larger than {largest:,} bytes; no such file of a bundle is")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield name
                else:
                    raise InputError(f"{printable(name)}: a link, or no file; a bundle holds files alone")


# ---- statement ----


def statement_of(bundle: Bundle, audit: PlannedAudit) -> Json:
    """Statement on a bundle: every file and model by digest; the question of the audit, its verdict and evidence.

    Parameters
    ----------
    bundle : Bundle
    audit : PlannedAudit
        Audit of the resolved configuration.

    Raises
    ------
    InputError
        Naming the file, where one cannot be read.
    """
    verdict = bundle.json(bundle.of_audit("verdict.json"))
    judged = read_verdict(bundle.audit_path("verdict.json")).rules
    if len(judged) != len(audit.settings.gate):
        raise InputError(f"{bundle.of_audit('verdict.json')}: judges other rules than config.yaml asks for")
    manifest = bundle.json(audit.dataset.manifest)
    sources = read_identity(bundle.audit_path("class_scores.parquet"))["made_from"]

    digests = bundle.stated_digests()
    for source in sources:
        digest = source.get("checkpoint_sha256") or ""
        if SHA256.fullmatch(digest):
            name = f"model:{label_of(source)}"
            if digests.setdefault(name, digest) != digest:
                raise InputError(
                    f"{bundle.of_audit('class_scores.parquet')}: values of two checkpoints of {label_of(source)}, "
                    f"{digests[name]} and {digest}; measure all of it with one"
                )
    rules = []
    for judged_rule, rule in zip(judged, audit.settings.gate, strict=True):
        rules.append({"words": judged_rule.words, **rule.model_dump(by_alias=True)})
    question = {
        "title": audit.title,
        "dataset": only(manifest, ["dataset", "digest", "samples", "classes"]),
        "models": audit.settings.models,
        "rules": rules,
    }
    return {
        "_type": TYPE,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "audit": bundle.audit,
            "question": question,
            "verdict": verdict,
            "evidence": {"measures": entries_of(audit.measures), "values_from": sources},
        },
    }


def write_statement(bundle: Bundle, audit: PlannedAudit) -> None:
    """Write statement.json into a bundle."""
    text = json.dumps(statement_of(bundle, audit), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(bundle.folder / STATEMENT, f"{text}\n")


class _Digest(Record):
    sha256: str


class _Subject(Record):
    name: str
    digest: _Digest


class _Statement(Record):
    # What is read of a statement before it is compared with the one that the files lead to.
    subject: list[_Subject]


def read_statement(path: Path) -> Json:
    """Content of a statement; InputError for what is no JSON, has a key twice or no number in it, or names no files."""
    try:
        content = path.read_text(encoding="utf-8")
        statement: Json = json.loads(content, object_pairs_hook=of_distinct_keys, parse_constant=refuse_non_finite)
        _Statement.model_validate(statement)
        return statement
    except ValidationError as error:
        raise InputError(f"{path}: not the statement of a bundle ({first_fault(error)}); ask for it again") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}); ask for the bundle again") from error


def other_digests(bundle: Bundle, statement: Json) -> Iterator[str]:
    """Yield which files of a bundle are not those that its statement names."""
    digest_of = {item["name"]: item["digest"]["sha256"] for item in statement["subject"]}
    if len(digest_of) < len(statement["subject"]):
        yield f"{STATEMENT}: names a file twice"
    stated_files = {name for name in digest_of if not name.startswith("model:")}
    digests = bundle.stated_digests()
    for name in sorted(stated_files | digests.keys()):
        if name not in digests:
            yield f"{name}: missing, as {STATEMENT} says"
        elif name not in stated_files:
            yield f"{name}: added, as {STATEMENT} says"
        elif digests[name] != digest_of[name]:
            yield f"{name}: edited or damaged, as {STATEMENT} says"


# ---- signature ----


def sign(statement: Path, key: Path | str) -> None:
    """Write the signature of a statement next to it, with the ending .sig; ssh-keygen asks for a passphrase itself.

    Parameters
    ----------
    statement : Path
    key : path
        Private key, or a public one whose private key an agent holds.

    Raises
    ------
    InputError
        Where the key cannot sign.
    """
    process = _ssh_keygen("sign", "-q", "-f", str(key), str(statement))
    if process.returncode:
        raise InputError(f"{key}: ssh-keygen did not sign with it ({_reason(process)}); name a private key of SSH")


def require_signed(statement: Path, signature: Path, *, allowed_signers: Path | str, identity: str) -> None:
    """Raise InputError unless a statement is signed by somebody whose key a file of allowed signers names.

    Parameters
    ----------
    statement, signature : Path
        Files of the bundle.
    allowed_signers : path
        File in the form of ALLOWED SIGNERS of ssh-keygen(1).
    identity : str
        Principal in that file who must have signed.
    """
    arguments = ["-f", str(allowed_signers), "-I", identity, "-s", str(signature)]
    process = _ssh_keygen("verify", *arguments, content=statement.read_bytes())
    if process.returncode:
        raise InputError(f"{signature.name}: no signature of {identity} on {statement.name} ({_reason(process)})")


def signing_key(statement: Path, signature: Path) -> str:
    """Words of ssh-keygen on the key that signed a statement, trusted or not; InputError without a signature."""
    process = _ssh_keygen("check-novalidate", "-s", str(signature), content=statement.read_bytes())
    if process.returncode:
        raise InputError(f"{signature.name}: no signature on {statement.name} ({_reason(process)})")
    return harmless(process.stdout.decode(errors="replace").strip())


def _ssh_keygen(action: str, *arguments: str, content: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", "-Y", action, "-n", NAMESPACE, *arguments]
    try:
        # A passphrase is asked for on the terminal itself.
        return subprocess.run(command, input=content, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise InputError("ssh-keygen: no such program; install OpenSSH 8.2 or newer, which has it") from error


def _reason(process: subprocess.CompletedProcess[bytes]) -> str:
    lines = process.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
    return harmless(lines[-1])
