"""Downloads that go on where they stopped and never leave half a file where a whole one is expected.

The library requests asks, follows redirects and proxies, and times out. What it lacks is here: to go on with a part,
to end what has no end, and a file's name only for what is whole and checked. Only fetch_checkpoint uses this: no other
step touches a network.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
import urllib3
from filelock import FileLock

from gfscore.core.addresses import without_query
from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file

ATTEMPTS, PAUSE, SILENCE = 5, 5.0, 60.0
"""Attempts at a file; seconds before the second one, doubled for each further one; seconds of silence that end one."""

RETRIED = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses that another attempt may mend; any other error status is final."""

LEAST_RATE, RATE_PERIOD = 1024, 60.0
"""Bytes a second, on average over so many seconds, below which an attempt ends: a trickle never times out."""

LARGEST = 1 << 34
"""Bytes of a file, whatever its server states: twice the largest published classifiers."""

REMEDY = "check `url`, or download the file in a browser and put it in place by hand"


def download(url: str, path: Path | str, *, check: Callable[[Path, str], object], sha256: str | None = None) -> None:
    """Fetch `url` to `path`, unless another job has done so meanwhile; the file appears whole or not at all.

    `check(path, name)` raises InputError for content that is not wanted; `sha256` (hex, or None) is compared too. A
    refused download is set aside as `<path>.rejected-download`. With `sha256`, which says what it must become, a
    `<path>.part` of an earlier run is continued. Raises InputError, naming address, reason and remedy.
    """
    path, part, address = Path(path), Path(f"{path}.part"), direct_address(url)
    print(f"{path}: downloading from {without_query(url)}, as soon as no other job works on this file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The system takes a lock away with its process, however that ends.
        with FileLock(f"{path}.lock"):
            if not path.exists():
                _fetch(address, part, pinned=bool(sha256))
                _install(part, path, url, check=check, sha256=sha256)
    except OSError as error:
        raise InputError(
            f"{error.filename or part}: cannot be written or locked ({error.strerror}); check space and rights, or put "
            "the file on a disk whose locks work"
        ) from error


def direct_address(url: str) -> str:
    """Address of the file itself behind a Google Drive link, which else leads to a page; others stay.

    ASSUME: `confirm=t` answers Google Drive's question about files too large for its virus scan.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"url {without_query(url)!r} is no address ({error}); {REMEDY}") from error
    if parts.scheme not in ("http", "https"):
        raise InputError(f"url {without_query(url)!r} is no http or https address; {REMEDY}")
    if parts.hostname not in ("drive.google.com", "docs.google.com"):
        return url
    named = re.search(r"/d/([\w-]+)", parts.path)
    identifier = named.group(1) if named else parse_qs(parts.query).get("id", [""])[0]
    if not identifier:
        raise InputError(
            f"url {without_query(url)!r} names no file on Google Drive; give the link of the file, not of a folder"
        )
    return f"https://drive.usercontent.google.com/download?id={identifier}&export=download&confirm=t"


def _fetch(address, part, *, pinned):
    reason: object
    with requests.Session() as session:
        # Compressed bytes are not those of the file, and could not be continued.
        session.headers.update({"User-Agent": "gfscore", "Accept-Encoding": "identity"})
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE * 2 ** (attempt - 1) if attempt else 0)
            try:
                return _attempt(session, address, part, pinned=pinned)
            except requests.HTTPError as error:
                answer: Any = error.response
                reason = f"HTTP {answer.status_code} {answer.reason}"
                if answer.status_code not in RETRIED:
                    raise InputError(f"{without_query(address)}: {reason}; {REMEDY}") from error
            except InputError:
                raise
            except ValueError as error:
                # What requests and urllib3 raise for an address, this one or one that it leads to.
                raise InputError(
                    f"{without_query(address)}: is or leads to no http or https address; {REMEDY}"
                ) from error
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                # The message of requests repeats the address, with what is secret in it; its cause does not.
                reason = getattr(next(iter(error.args), None), "reason", None) or error
            print(f"{part}: attempt {attempt + 1} of {ATTEMPTS} failed: {reason}")
    raise InputError(
        f"{without_query(address)}: could not be downloaded in {ATTEMPTS} attempts ({reason}); run again later, or "
        f"{REMEDY}"
    )


def _attempt(session, address, part, *, pinned):
    # If-Range holds the version of the file that an earlier attempt began. Without it, or a pin that tells the right
    # file in the end, two halves might be glued together that belong to different files.
    if not (pinned or session.headers.get("If-Range")):
        part.unlink(missing_ok=True)
    have = part.stat().st_size if part.exists() else 0
    wanted = {"Range": f"bytes={have}-"} if have else {}
    with session.get(address, headers=wanted, stream=True, timeout=SILENCE) as answer:
        continued = answer.status_code == requests.codes.partial_content
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink(missing_ok=True)
            raise requests.ConnectionError("the server has no such range; starting over")
        answer.raise_for_status()
        if not continued:
            # A weak ETag ("W/...") promises the same meaning, not the same bytes.
            tag = answer.headers.get("ETag", "")
            session.headers["If-Range"] = tag if tag.startswith('"') else answer.headers.get("Last-Modified")
        with part.open("ab" if continued else "wb") as file:
            _copy(answer.raw, file, part)


def _copy(body, file, part):
    most = min(LARGEST, file.tell() + shutil.disk_usage(part.parent).free // 2)
    since, before = time.monotonic(), file.tell()
    # Raises an error of urllib3 where less comes than the server stated.
    while block := body.read1(1 << 20):
        if file.tell() + len(block) > most:
            part.unlink()
            raise InputError(
                f"{part}: more than {most / 1e9:.2f} GB, which is half of the free disk or the most accepted; {REMEDY}"
            )
        file.write(block)
        now = time.monotonic()
        if now - since > RATE_PERIOD:
            if file.tell() - before < LEAST_RATE * (now - since):
                raise requests.Timeout(f"only {file.tell() - before} bytes came in {now - since:.0f} seconds")
            print(f"{part}: {file.tell() / 1e6:.1f} MB")
            since, before = now, file.tell()


def _install(part, path, url, *, check, sha256):
    try:
        check(part, f"{path} (from {without_query(url)})")
        found = sha256_of_file(part)
        if sha256 and found != sha256:
            raise InputError(
                f"{path}: what {without_query(url)} gives has sha256 {found[:12]}, expected {sha256[:12]}; correct the "
                "digest if you know the new one to be right, or " + REMEDY
            )
    except InputError as error:
        rejected = part.replace(f"{path}.rejected-download")
        raise InputError(f"{error}; what came was set aside as {rejected}") from error
    print(f"{path}: {part.stat().st_size} bytes")
    part.replace(path)
