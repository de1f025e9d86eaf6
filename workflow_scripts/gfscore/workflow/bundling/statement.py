"""The statement of a bundle: names and digests of what it holds, in the form of in-toto, which can be signed.

Source: in-toto attestation framework, Statement v1. Everything in it follows from the files of the bundle, so that a
check makes it anew and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.files import write_text
from gfscore.core.identity import label_of
from gfscore.tables.parquet_tables import read_identity
from gfscore.workflow.bundling.contents import SIGNATURE, STATEMENT, Bundle

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "tag:gfscore,2026:class-wise-audit/v1"
"""Identifies the form of the predicate below; nothing is to be found there."""

SHA256 = re.compile("[0-9a-f]{64}")

LARGEST = 1 << 26
"""Bytes of a statement that is read."""


def statement_of(bundle: Bundle, config: Mapping[str, Any]) -> dict[str, Any]:
    """The statement on a bundle: every file and model by digest; the question of the audit, its verdict and evidence.

    Takes the resolved configuration of the audit. Raises InputError, naming the file, where one cannot be read.
    """
    audit, asked = bundle.audit, config["audits"][bundle.audit]
    verdict = bundle.json(bundle.of_audit("verdict.json"))
    manifest = bundle.json(f"datasets/{asked['dataset']}.json")
    sources = read_identity(bundle.path(bundle.of_audit("class_scores.parquet")))["made_from"]
    models = {f"model:{label_of(source)}": source.get("checkpoint_sha256") for source in sources}
    digests = {name: digest for name, digest in bundle.digests.items() if name not in (STATEMENT, SIGNATURE)}
    digests |= {name: digest for name, digest in models.items() if SHA256.fullmatch(digest or "")}
    words = [rule["words"] for rule in verdict["rules"]]
    return {
        "_type": TYPE,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "audit": audit,
            "question": {
                "title": asked["title"],
                "dataset": {name: manifest[name] for name in ("dataset", "digest", "samples", "classes")},
                "models": asked["models"],
                "rules": [{"words": said, **rule} for said, rule in zip(words, asked["gate"], strict=True)],
            },
            "verdict": verdict,
            "evidence": {"measures": config["measures"], "values_from": sources},
        },
    }


def write_statement(bundle: Bundle, config: Mapping[str, Any]) -> None:
    """Write statement.json into a bundle."""
    text = json.dumps(statement_of(bundle, config), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(bundle.folder / STATEMENT, f"{text}\n")


def read_statement(path: Path) -> Any:
    """Content of a statement; InputError for what is no JSON, holds a key twice or no number, or is very large."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path}: larger than {LARGEST:,} bytes; no statement is")
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except InputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}); ask for the bundle again") from error


def _once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice in a mapping")
    return dict(pairs)


def _no_number(text):
    raise ValueError(f"{text} is no number of JSON")
