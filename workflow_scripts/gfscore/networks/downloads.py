"""Downloads by libcurl that leave no incomplete file under the final name.

libcurl resumes, follows redirects, and limits size and rate; added here are attempts, the checks before a file gets its
name, and links of Google Drive. Used by fetch_checkpoint alone, the only step with network access.
"""

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

ATTEMPTS = 5
"""Attempts per file."""

PAUSE = 5.0
"""Seconds before the second attempt, doubled for each further one."""

PROGRESS = 60.0
"""Seconds between lines on progress."""

LARGEST = 1 << 34
"""Largest accepted size of a file in bytes, twice the size of the largest published classifiers."""

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
"""Options of libcurl for all downloads."""

FINAL = {
    pycurl.E_UNSUPPORTED_PROTOCOL,
    pycurl.E_URL_MALFORMAT,
    pycurl.E_FILESIZE_EXCEEDED,
    pycurl.E_TOO_MANY_REDIRECTS,
    pycurl.E_PEER_FAILED_VERIFICATION,
    pycurl.E_SSL_CACERT_BADFILE,
}
"""Errors of libcurl after which no further attempt is made."""

RETRIED = {408, 416, 425, 429, 500, 502, 503, 504}
"""HTTP statuses after which a further attempt is made; others from 400 on are final."""

RANGE_NOT_SATISFIABLE = 416

REMEDY = "check `url`, or download the file in a browser and put it in place by hand"


def download(url: str, path: Path | str, *, check: Callable[[Path, str], object], sha256: str | None = None) -> None:
    """Download a file unless another job did so meanwhile; it appears only when it is complete.

    Parameters
    ----------
    url : str
    path : Path or str
        The file. A refused download is kept as `<path>.rejected-download`.
    check : callable
        check(path, name) raises InputError for unsuitable content.
    sha256 : str, optional
        Digest (hex) that the content must have. With it, a `<path>.part` of an earlier attempt or run is continued.

    Raises
    ------
    InputError
        Naming URL, reason and remedy.
    """
    path = Path(path)
    partial = Path(f"{path}.part")
    address = direct_address(url)
    print(f"{path}: downloading from {without_query(url)}, as soon as no other job works on this file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The operating system releases the lock when the process ends.
        with FileLock(f"{path}.lock"):
            if not path.exists():
                _fetch(address, partial, pinned=bool(sha256))
                _install(partial, path, url, check=check, sha256=sha256)
    except OSError as error:
        raise InputError(
            f"{error.filename or partial}: cannot be written or locked ({error.strerror}); check free space and "
            "permissions, or put the file on a file system that supports locks"
        ) from error


def direct_address(url: str) -> str:
    """URL in ASCII; for a link of Google Drive the URL of the file itself, which would lead to a web page.

    ASSUME: `confirm=t` confirms Google Drive's warning about files too large for its virus scan.
    """
    try:
        components = urlsplit(url)
        host = components.netloc.encode("idna").decode()
    except ValueError as error:
        raise InputError(f"{without_query(url)}: is no valid URL ({error}); {REMEDY}") from error
    if components.hostname not in ("drive.google.com", "docs.google.com"):
        return quote(components._replace(netloc=host).geturl(), safe="%/:=&?~#+!$,;'@()*[]")
    identifier = re.search(r"(?:/d/|[?&]id=)([\w-]+)", url)
    if not identifier:
        raise InputError(f"{without_query(url)}: names no file on Google Drive; give the link of a file, not a folder")
    return f"https://drive.usercontent.google.com/download?id={identifier[1]}&export=download&confirm=t"


def _fetch(address: str, partial: Path, *, pinned: bool) -> None:
    path = partial.with_suffix("")
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE * 2 ** (attempt - 1) if attempt else 0)
        # Without a pinned digest, pieces of two versions of the file might be joined unnoticed.
        if not pinned:
            partial.unlink(missing_ok=True)
        error, status, reason = _attempt(address, partial)
        if not error and status != RANGE_NOT_SATISFIABLE:
            return
        # After these errors, and after none, a further attempt begins anew.
        begins_anew = error in (0, pycurl.E_RANGE_ERROR, pycurl.E_FILESIZE_EXCEEDED)
        if begins_anew or not partial.stat().st_size:
            partial.unlink()
        if error in FINAL or (status >= 400 and status not in RETRIED):
            raise InputError(f"{path}: {without_query(address)}: {reason}; {REMEDY}")
        print(f"{partial}: attempt {attempt + 1} of {ATTEMPTS} failed: {reason}")
    raise InputError(
        f"{path}: could not be downloaded from {without_query(address)} in {ATTEMPTS} attempts ({reason}); run again "
        f"later, or {REMEDY}"
    )


def _attempt(address: str, partial: Path) -> tuple[int, int, str]:
    # How it ended: error of libcurl and HTTP status, 0 for none; the error in words.
    curl = pycurl.Curl()
    error = 0
    reason = "range not satisfiable"
    reported = time.monotonic()

    def report(_: int, received: int, *uploaded: int) -> None:
        nonlocal reported
        if time.monotonic() - reported > PROGRESS:
            reported = time.monotonic()
            print(f"{partial}: {(start + received) / 1e6:.1f} MB")

    authorities = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or certifi.where()
    with partial.open("ab") as file:
        start = file.tell()
        limit = min(LARGEST, start + shutil.disk_usage(partial.parent).free // 2)
        for option, value in OPTIONS.items():
            curl.setopt(option, value)
        curl.setopt(pycurl.URL, address)
        curl.setopt(pycurl.WRITEDATA, file)
        curl.setopt(pycurl.RESUME_FROM_LARGE, start)
        # Of the bytes that are missing; 0 would be no limit.
        curl.setopt(pycurl.MAXFILESIZE_LARGE, max(1, limit - start))
        curl.setopt(pycurl.CAPATH if Path(authorities).is_dir() else pycurl.CAINFO, authorities)
        curl.setopt(pycurl.XFERINFOFUNCTION, report)
        try:
            curl.perform()
        except pycurl.error as raised:
            error, reason = raised.args
    if error == pycurl.E_WRITE_ERROR:
        raise OSError(errno.EIO, reason, str(partial))
    if error == pycurl.E_FILESIZE_EXCEEDED:
        reason = f"more than {limit / 1e9:.2f} GB, half of the free disk space or the largest size"
    return error, curl.getinfo(pycurl.RESPONSE_CODE), reason


def _install(partial: Path, path: Path, url: str, *, check: Callable[[Path, str], object], sha256: str | None) -> None:
    try:
        check(partial, f"{path} (from {without_query(url)})")
        digest = sha256_of_file(partial)
        if sha256 and digest != sha256:
            raise InputError(
                f"{path}: the file at {without_query(url)} has sha256 {digest[:12]}, expected {sha256[:12]}; correct "
                "the digest if you know that the new one is right, or " + REMEDY
            )
    except InputError as error:
        rejected = partial.replace(f"{path}.rejected-download")
        raise InputError(f"{error}; the download was kept as {rejected}") from error
    print(f"{path}: {partial.stat().st_size} bytes")
    partial.replace(path)
