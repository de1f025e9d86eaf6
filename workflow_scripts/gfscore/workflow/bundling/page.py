"""The page of a bundle, drawn again from its tables and compared with the one that lies there."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

from gfscore.audit.table_names import TABLES_OF_AUDIT
from gfscore.audit.verdicts.verdict import read_verdict
from gfscore.core.digests import without_checksums
from gfscore.core.names import printable
from gfscore.core.software import software, version_in_words
from gfscore.show.page import judged
from gfscore.show.page.drawing import drawn_page
from gfscore.show.page.provenance import versions
from gfscore.workflow.bundling.contents import Bundle
from gfscore.workflow.bundling.differences import differences
from gfscore.workflow.plan import PlannedAudit

PAGE = "report.html"

STATED = re.compile(r"<dt>([^<]+) \(report\)</dt><dd>([^<]*)</dd>")
"""Versions that drew a page, as its provenance states them."""

COMPRESSED = re.compile(r"H4sI[A-Za-z0-9+/]{20,}={0,2}")
"""Base64 of gzip, by the first bytes that every such file has."""

NUMBERED = re.compile(r"(?<=[\"#])(clip|gradient_)\d+(?=[\")])")
"""Names within a drawing."""

LARGEST = 1 << 28
"""Bytes of one compressed part of a page that are unpacked."""


def other_time_or_version(bundle: Bundle) -> Iterator[str]:
    """Whether the page says another time or version of its verdict than verdict.json."""
    verdict = read_verdict(bundle.path(bundle.of_audit("verdict.json")))
    page = _text(bundle)
    for what, words in (
        ("Judged", judged.time_of(verdict)),
        ("By", f"{verdict.software['name']} {version_in_words(verdict.software)}"),
    ):
        if f"<dt>{what}</dt><dd>{html.escape(words)}</dd>" not in page:
            yield f"{PAGE}: does not say of its verdict, as verdict.json does: {what} {printable(words)}"


def undrawable(bundle: Bundle) -> str | None:
    """Why the page cannot be drawn again as it was: another version drew it than is installed; None if it can."""
    verdict = bundle.json(bundle.of_audit("verdict.json"))
    here, stated = versions(), dict(STATED.findall(_text(bundle)))
    judged_by, this = verdict["software"], software()
    if judged_by != this:
        return f"its verdict is of {version_in_words(judged_by)}, this is {version_in_words(this)}"
    if this["changed"]:
        return f"the code of this {version_in_words(this)}, which is not what its commit holds"
    for name in here:
        if html.unescape(stated.get(name, "")) != here[name]:
            return f"{name} {printable(html.unescape(stated.get(name, 'of no version')))} drew it, here is {here[name]}"
    return None


def other_page(bundle: Bundle, audit: PlannedAudit) -> Iterator[str]:
    """Where the page differs from the one that the tables, the verdict and the configuration give.

    Compressed numbers may differ as those of tables do; every other letter must be the same.
    """
    config = audit.run.config
    files: dict[str, Any] = {name: bundle.path(bundle.of_audit(f"{name}.parquet")) for name in TABLES_OF_AUDIT}
    files |= {f"{name}_json": bundle.path(bundle.of_audit(f"{name}.json")) for name in ("calibration", "comparison")}
    files |= {
        "verdict": bundle.path(bundle.of_audit("verdict.json")),
        "sweeps": bundle.path(f"sweeps/{audit.name}.parquet"),
    }
    files["pictures"] = [bundle.path(mapper.pictures) for mapper in audit.mappers]
    drawn = drawn_page(
        files,
        audit=audit.name,
        title=audit.title,
        measures=audit.measure_entries(),
        models=audit.described_models(),
        published_samples=audit.dataset.entry["published_accuracy"],
        fp_lambda=config["disparity"]["fp_lambda"],
        contact=config["report"]["contact"],
    )
    stored, drawn = _renumbered(_text(bundle)), _renumbered(drawn.rstrip("\n") + "\n")
    if stored == drawn:
        return
    if COMPRESSED.sub("", stored) != COMPRESSED.sub("", drawn):
        yield f"{PAGE}: not the page that follows from the other files; its words or drawings are others"
        return
    for one, other in zip(COMPRESSED.findall(stored), COMPRESSED.findall(drawn), strict=True):
        if one != other:
            yield from differences(PAGE, _unpacked(one), _unpacked(other))


def _text(bundle: Bundle) -> str:
    content = bundle.path(bundle.of_audit(PAGE)).read_bytes()
    return without_checksums(content).decode("utf-8", errors="replace")


def _renumbered(page: str) -> str:
    # The library numbers clips and gradients on from what the process drew before; here in the order of the page.
    numbers: dict[str, str] = {}

    def renumbered(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"{match[1]}{len(numbers)}")

    return NUMBERED.sub(renumbered, page)


def _unpacked(text: str) -> Any:
    # What is no JSON, the library that draws, is compared letter by letter.
    unpacking = zlib.decompressobj(wbits=31)
    content = unpacking.decompress(base64.b64decode(text), LARGEST).decode("utf-8", errors="replace")
    if unpacking.unconsumed_tail:
        return "larger than any part of a page"
    try:
        return _with_numbers(json.loads(content))
    except ValueError:
        return content


def _with_numbers(data: Any) -> Any:
    # Packed arrays as lists of numbers, so that these are compared as numbers.
    if isinstance(data, list):
        return [_with_numbers(item) for item in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {"shape", "f64"} and isinstance(data["f64"], str):
        import numpy as np

        content = base64.b64decode(data["f64"])
        numbers = np.frombuffer(content[: len(content) // 8 * 8], dtype="<f8").tolist()
        return {"shape": data["shape"], "numbers": numbers, "bytes": len(content)}
    return {key: _with_numbers(value) for key, value in data.items()}
