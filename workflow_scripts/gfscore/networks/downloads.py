"""Downloads by libcurl that leave no incomplete file under the final name.

libcurl resumes, follows redirects, and limits size and rate; added here are attempts, the checks before a file gets its
name, and links of Google Drive. Used by fetch_checkpoint alone, the only step with network access.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

import certifi
import pycurl
from filelock import FileLock

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.names import without_query

ATTEMPTS, PAUSE, PROGRESS = 5, 5.0, 60.0
"""Attempts per file; seconds before the second one, doubled for each further one; seconds between lines on progress."""

LARGEST = 1 << 34
"""Largest accepted size of a file in bytes, twice that of the largest published classifiers."""

OPTIONS = {
    # An attempt with fewer bytes per second, for so many seconds, is ended.
    pycurl.LOW_SPEED_LIMIT: 1024,
    pycurl.LOW_SPEED_TIME: 60,
    pycurl.CONNECTTIMEOUT: 60,
    pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
    pycurl.REDIR_PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
    pycurl.FOLLOWLOCATION: True,
    pycurl.FAILONERROR: True,
    pycurl.NETRC: pycurl.NETRC_OPTIONAL,
    pycurl.NOPROGRESS: False,
    pycurl.USERAGENT: "gfscore",
}
FINAL = {
    pycurl.E_UNSUPPORTED_PROTOCOL,
    pycurl.E_URL_MALFORMAT,
    pycurl.E_FILESIZE_EXCEEDED,
    pycurl.E_TOO_MANY_REDIRECTS,
    pycurl.E_PEER_FAILED_VERIFICATION,
    pycurl.E_SSL_CACERT_BADFILE,
}
RETRIED, RANGE_NOT_SATISFIABLE = {408, 416, 425, 429, 500, 502, 503, 504}, 416
"""Options and errors of libcurl for all downloads; HTTP statuses, of which those not in RETRIED are final as well."""

REMEDY = "check `url`, or download the file in a browser and put it in place by hand"


def download(url: str, path: Path | str, *, check: Callable[[Path, str], object], sha256: str | None = None) -> None:
    """Download `url` to `path` unless another job did so meanwhile; the file appears only when it is complete.

    `check(path, name)` raises InputError for unsuitable content; `sha256` (hex, or None) is compared too. A refused
    download is kept as `<path>.rejected-download`. With `sha256`, a `<path>.part` of an earlier attempt or run is
    continued. Raises InputError, naming URL, reason and remedy.
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
    """URL in ASCII; that of the file itself for a link of Google Drive, which would lead to a web page.

    ASSUME: `confirm=t` confirms Google Drive's warning about files too large for its virus scan.
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc.encode("idna").decode()
    except ValueError as error:
        raise InputError(f"{without_query(url)}: is no valid URL ({error}); {REMEDY}") from error
    if parts.hostname not in ("drive.google.com", "docs.google.com"):
        return quote(parts._replace(netloc=host).geturl(), safe="%/:=&?~#+!$,;'@()*[]")
    identifier = re.search(r"(?:/d/|[?&]id=)([\w-]+)", url)
    if not identifier:
        raise InputError(f"{without_query(url)}: names no file on Google Drive; give the link of a file, not a folder")
    return f"https://drive.usercontent.google.com/download?id={identifier[1]}&export=download&confirm=t"


def _fetch(address, part, *, pinned):
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE * 2 ** (attempt - 1) if attempt else 0)
        # Without a pinned digest, parts of two versions of the file might be joined unnoticed.
        if not pinned:
            part.unlink(missing_ok=True)
        error, status, reason = _attempt(address, part)
        if not (error or status == RANGE_NOT_SATISFIABLE):
            return
        if error in (0, pycurl.E_RANGE_ERROR, pycurl.E_FILESIZE_EXCEEDED) or not part.stat().st_size:
            part.unlink()
        if error in FINAL or (status >= 400 and status not in RETRIED):
            raise InputError(f"{without_query(address)}: {reason}; {REMEDY}")
        print(f"{part}: attempt {attempt + 1} of {ATTEMPTS} failed: {reason}")
    raise InputError(
        f"{without_query(address)}: could not be downloaded in {ATTEMPTS} attempts ({reason}); run again later, or "
        f"{REMEDY}"
    )


def _attempt(address, part):
    # Error of libcurl, 0 for none; HTTP status, 0 for none; the error in words.
    curl, error, reason, told = pycurl.Curl(), 0, "range not satisfiable", time.monotonic()

    def tell(_: int, received: int, *uploaded: int) -> None:
        nonlocal told
        if time.monotonic() - told > PROGRESS:
            told = time.monotonic()
            print(f"{part}: {(have + received) / 1e6:.1f} MB")

    authorities = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or certifi.where()
    with part.open("ab") as file:
        have = file.tell()
        most = min(LARGEST, have + shutil.disk_usage(part.parent).free // 2)
        options = OPTIONS | {
            pycurl.URL: address,
            pycurl.WRITEDATA: file,
            pycurl.RESUME_FROM_LARGE: have,
            # Of the bytes that are missing; 0 would be no limit.
            pycurl.MAXFILESIZE_LARGE: max(1, most - have),
            pycurl.CAPATH if Path(authorities).is_dir() else pycurl.CAINFO: authorities,
            pycurl.XFERINFOFUNCTION: tell,
        }
        for option, value in options.items():
            curl.setopt(option, value)
        try:
            curl.perform()
        except pycurl.error as raised:
            error, reason = raised.args
    if error == pycurl.E_WRITE_ERROR:
        raise OSError(errno.EIO, reason, str(part))
    if error == pycurl.E_FILESIZE_EXCEEDED:
        reason = f"more than {most / 1e9:.2f} GB, half of the free disk space or the largest size"
    return error, curl.getinfo(pycurl.RESPONSE_CODE), reason


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
