"""Resumable downloads that never leave an incomplete file under the final name.

Adds to the library requests: resumption, limits of size and rate, and renaming after the checks. Used by
fetch_checkpoint alone, the only step with network access.
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
"""Attempts per file; seconds before the second one, doubled for each further one; seconds without data that end one."""

RETRIED = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses after which the download is tried again; other error statuses are final."""

LEAST_RATE, RATE_PERIOD = 1024, 60.0
"""Smallest average rate in bytes per second over a period in seconds; a slower attempt is ended."""

LARGEST = 1 << 34
"""Largest accepted size of a file in bytes, twice that of the largest published classifiers."""

REMEDY = "check `url`, or download the file in a browser and put it in place by hand"


def download(url: str, path: Path | str, *, check: Callable[[Path, str], object], sha256: str | None = None) -> None:
    """Download `url` to `path` unless another job did so meanwhile; the file appears only when it is complete.

    `check(path, name)` raises InputError for unsuitable content; `sha256` (hex, or None) is compared too. A refused
    download is kept as `<path>.rejected-download`. With `sha256`, a `<path>.part` of an earlier run is continued.
    Raises InputError, naming URL, reason and remedy.
    """
    path, part, address = Path(path), Path(f"{path}.part"), direct_address(url)
    print(f"{path}: downloading from {without_query(url)}, as soon as no other job works on this file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The operating system releases the lock when the process ends.
        with FileLock(f"{path}.lock"):
            if not path.exists():
                _fetch(address, part, pinned=bool(sha256))
                _install(part, path, url, check=check, sha256=sha256)
    except OSError as error:
        raise InputError(
            f"{error.filename or part}: cannot be written or locked ({error.strerror}); check free space and "
            "permissions, or put the file on a file system that supports locks"
        ) from error


def direct_address(url: str) -> str:
    """URL of the file itself for a Google Drive link, which would lead to a web page; other URLs are unchanged.

    ASSUME: `confirm=t` confirms Google Drive's warning about files too large for its virus scan.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"url {without_query(url)!r} is no valid URL ({error}); {REMEDY}") from error
    if parts.scheme not in ("http", "https"):
        raise InputError(f"url {without_query(url)!r} is no http or https URL; {REMEDY}")
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
        # Without compression, which would change the bytes and prevent resumption.
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
                # requests and urllib3 raise it for an invalid URL, also after a redirect.
                raise InputError(
                    f"{without_query(address)}: is no http or https URL, or redirects to another kind; {REMEDY}"
                ) from error
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                # The message of requests repeats the URL with its query, which may be secret; its cause does not.
                reason = getattr(next(iter(error.args), None), "reason", None) or error
            print(f"{part}: attempt {attempt + 1} of {ATTEMPTS} failed: {reason}")
    raise InputError(
        f"{without_query(address)}: could not be downloaded in {ATTEMPTS} attempts ({reason}); run again later, or "
        f"{REMEDY}"
    )


def _attempt(session, address, part, *, pinned):
    # If-Range holds the version of the file of an earlier attempt. Without it or a pinned digest, parts of different
    # files might be concatenated.
    if not (pinned or session.headers.get("If-Range")):
        part.unlink(missing_ok=True)
    have = part.stat().st_size if part.exists() else 0
    wanted = {"Range": f"bytes={have}-"} if have else {}
    with session.get(address, headers=wanted, stream=True, timeout=SILENCE) as answer:
        continued = answer.status_code == requests.codes.partial_content
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink(missing_ok=True)
            raise requests.ConnectionError("the server does not have this range; starting over")
        answer.raise_for_status()
        if not continued:
            # A weak ETag ("W/...") does not guarantee equal bytes.
            tag = answer.headers.get("ETag", "")
            session.headers["If-Range"] = tag if tag.startswith('"') else answer.headers.get("Last-Modified")
        with part.open("ab" if continued else "wb") as file:
            _copy(answer.raw, file, part)


def _copy(body, file, part):
    most = min(LARGEST, file.tell() + shutil.disk_usage(part.parent).free // 2)
    since, before = time.monotonic(), file.tell()
    # urllib3 raises an error if fewer bytes arrive than the server announced.
    while block := body.read1(1 << 20):
        if file.tell() + len(block) > most:
            part.unlink()
            raise InputError(
                f"{part}: more than {most / 1e9:.2f} GB, half of the free disk space or the largest size; {REMEDY}"
            )
        file.write(block)
        now = time.monotonic()
        if now - since > RATE_PERIOD:
            if file.tell() - before < LEAST_RATE * (now - since):
                raise requests.Timeout(f"only {file.tell() - before} bytes received in {now - since:.0f} seconds")
            print(f"{part}: {file.tell() / 1e6:.1f} MB")
            since, before = now, file.tell()


def _install(part, path, url, *, check, sha256):
    try:
        check(part, f"{path} (from {without_query(url)})")
        digest = sha256_of_file(part)
        if sha256 and digest != sha256:
            raise InputError(
                f"{path}: the file at {without_query(url)} has sha256 {digest[:12]}, expected {sha256[:12]}; correct "
                "the digest if you know that the new one is right, or " + REMEDY
            )
    except InputError as error:
        rejected = part.replace(f"{path}.rejected-download")
        raise InputError(f"{error}; the download was kept as {rejected}") from error
    print(f"{path}: {part.stat().st_size} bytes")
    part.replace(path)
