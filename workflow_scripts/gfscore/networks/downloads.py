"""Downloads that survive flaky networks and never leave half a file where a whole one is expected.

Bytes go to `<path>.part`; only a whole and checked file gets its name. One job at a time may download a file (see
gfscore.networks.locks). Used by fetch_checkpoint alone: no other step of the workflow touches a network.
"""

import http.client
import json
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from gfscore.core.addresses import without_query
from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file

BLOCK = 1 << 20
LONGEST_PAUSE = 60.0
RETRIED = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses that another attempt may mend; any other error status is final."""

LEAST_RATE, RATE_PERIOD = 1024, 60.0
"""Bytes a second, on average over so many seconds, below which a connection is given up: a server that sends a byte now
and then never times out."""

LARGEST_UNDECLARED = 1 << 34
"""Bytes of a file whose length the server does not state: twice the largest published classifiers, and an end to a body
that has none."""

RESERVED = "%/:?#[]@!$&'()*+,;=~"
"""Signs that have a meaning in addresses, or stand for another one."""

BY_HAND = "or download the file in a browser and put it in place by hand"


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, *answer):
        # urllib itself would go on to ftp.
        address = answer[-1]
        if urlsplit(address).scheme not in ("http", "https"):
            raise InputError(
                f"{without_query(request.full_url)}: leads to {without_query(address)!r}, no http or https address; "
                f"check the url in config.yaml, {BY_HAND}"
            )
        return super().redirect_request(request, *answer)


class _TryAgain(Exception):
    """An attempt failed in a way that the next may not."""

    def __init__(self, reason, pause=0.0):
        super().__init__(reason)
        self.pause = pause


def download(url, path, *, check, sha256=None, attempts=5, pause=1.0, timeout=60.0):
    """Fetch `url` to `path`, resuming what an earlier attempt or run left; the file appears whole or not at all.

    `check(path, name)` raises InputError for content that is not wanted; `sha256` (hex, or None) is compared too. A
    refused download is set aside as `<path>.rejected-download`. After a lost connection, a time-out of `timeout`
    seconds, a minute of less than LEAST_RATE or a busy server there are up to `attempts` attempts, with pauses that
    double from `pause` seconds. Progress goes to standard output. Raises InputError, naming address, reason and remedy.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(f"{path}.part")
    address = direct_address(url)
    print(f"{path}: downloading from {without_query(url)}")
    for attempt in range(1, attempts + 1):
        try:
            _attempt(address, part, timeout=timeout, pinned=bool(sha256))
            break
        except _TryAgain as error:
            print(f"{path}: attempt {attempt} of {attempts} failed: {error}")
            if attempt == attempts:
                raise InputError(
                    f"{path}: {without_query(url)} could not be downloaded in {attempts} attempts ({error}); run "
                    f"again to go on where it stopped, {BY_HAND}"
                ) from error
            time.sleep(min(LONGEST_PAUSE, max(error.pause, pause * 2 ** (attempt - 1))))
    _install(part, path, url, check=check, sha256=sha256)


def direct_address(url):
    """Address of the file itself behind a Google Drive link, which else leads to a page; others stay, in ASCII.

    ASSUME: `confirm=t` answers Google Drive's question about files too large for its virus scan.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(
            f"url {without_query(url)!r} is no address ({error}); correct it, or put the file in place by hand"
        ) from error
    if parts.scheme not in ("http", "https"):
        raise InputError(
            f"url {without_query(url)!r} is no http or https address; correct it, or put the file in place by hand"
        )
    if parts.hostname not in ("drive.google.com", "docs.google.com"):
        # Letters beyond ASCII as browsers send them; what is written with % already stays.
        return parts._replace(path=quote(parts.path, safe=RESERVED), query=quote(parts.query, safe=RESERVED)).geturl()
    named = re.search(r"/d/([\w-]+)", parts.path)
    identifier = named.group(1) if named else parse_qs(parts.query).get("id", [""])[0]
    if not identifier:
        raise InputError(
            f"url {without_query(url)!r} names no file on Google Drive; give the link of the file, not of a folder"
        )
    return f"https://drive.usercontent.google.com/download?id={identifier}&export=download&confirm=t"


def _attempt(address, part, *, timeout, pinned):
    have = part.stat().st_size if part.exists() else 0
    validator = _validator_of(part, address)
    # Without either, a file that changed on the server meanwhile would be glued to the old beginning unseen.
    if have and not (validator or pinned):
        have = 0
    headers = {"User-Agent": "gfscore", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if validator:
            headers["If-Range"] = validator
    try:
        opener = urllib.request.build_opener(_Redirects)
        with opener.open(urllib.request.Request(address, headers=headers), timeout=timeout) as answer:
            _receive(answer, part, address, have=have)
    except urllib.error.HTTPError as error:
        _refused(error, part, address)
    except (InputError, _TryAgain):
        raise
    except ValueError as error:
        # Of the url or of what it leads to: names of hosts that there cannot be.
        raise InputError(
            f"{without_query(address)}: is or leads to no address ({error}); correct the url, {BY_HAND}"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and not isinstance(error, urllib.error.URLError) and error.filename:
            raise InputError(
                f"{error.filename}: cannot be written ({error.strerror}); check space and rights"
            ) from error
        raise _TryAgain(str(getattr(error, "reason", "")) or str(error) or type(error).__name__) from error


def _refused(error, part, address):
    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
        _forget(part)
        raise _TryAgain("the server has no such range; starting over") from error
    reason = f"HTTP {error.code} {error.reason}"
    if error.code in RETRIED:
        wait = error.headers.get("Retry-After", "")
        raise _TryAgain(reason, pause=float(wait) if _COUNT.fullmatch(wait) else 0.0) from error
    raise InputError(f"{without_query(address)}: {reason}; check the url in config.yaml, {BY_HAND}") from error


# Not str.isdigit, to which a superscript is a digit.
_COUNT = re.compile("[0-9]{1,18}")


def _receive(answer, part, address, *, have):
    span = re.match(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]+|\*)", answer.headers.get("Content-Range", ""))
    resumed = answer.status == http.client.PARTIAL_CONTENT
    if resumed and (not span or int(span.group(1)) != have):
        _forget(part)
        raise _TryAgain("the server sent another range than asked for; starting over")
    start = have if resumed else 0
    length = answer.headers.get("Content-Length", "")
    total = start + int(length) if _COUNT.fullmatch(length) else None
    if not resumed:
        _remember(part, address, answer.headers)
    with part.open("ab" if resumed else "wb") as file:
        done = _copy(answer, file, part, address, start=start, total=total)
        file.flush()
        os.fsync(file.fileno())
    # http.client returns what came when a connection closes early, without an error.
    if total is not None and done != total:
        raise _TryAgain(f"the connection closed after {done} of {total} bytes")
    # What came may not be what lies there.
    size = part.stat().st_size if part.exists() else 0
    if size != done:
        _forget(part)
        raise _TryAgain(f"{part} has {size} bytes instead of {done}: another program works on it")


def _copy(answer, file, part, address, *, start, total):
    done, told = start, time.monotonic()
    since, before = told, start
    most = min(LARGEST_UNDECLARED, start + shutil.disk_usage(part.parent).free // 2) if total is None else total
    while block := answer.read1(BLOCK):
        file.write(block)
        done += len(block)
        if total is None and done > most:
            _forget(part)
            raise InputError(
                f"{without_query(address)}: {most / 1e9:.2f} GB came without an end, and the server states no "
                f"length (then it is at most {LARGEST_UNDECLARED / 1e9:.0f} GB, and half of the free disk); "
                f"check the url in config.yaml, {BY_HAND}"
            )
        now = time.monotonic()
        if now - since > RATE_PERIOD:
            if done - before < LEAST_RATE * (now - since):
                raise _TryAgain(f"only {done - before} bytes came in {now - since:.0f} seconds")
            since, before = now, done
        if now - told > 5:
            told = now
            of = f" of {total / 1e6:.1f} MB ({done / total:.0%})" if total else " MB"
            print(f"{part.stem}: {done / 1e6:.1f}{of}")
    return done


def _install(part, path, url, *, check, sha256):
    try:
        check(part, f"{path} (from {without_query(url)})")
        found = sha256_of_file(part)
        if sha256 and found != sha256:
            raise InputError(
                f"{path}: what {without_query(url)} gives has sha256 {found[:12]}, expected {sha256[:12]}; correct "
                f"the url, or the digest if you know the new one to be right, {BY_HAND}"
            )
    except InputError as error:
        # Replaces the one before: what an address gives is never the only copy.
        rejected = part.replace(f"{path}.rejected-download")
        _forget(part)
        raise InputError(f"{error}; what came was set aside as {rejected}") from error
    print(f"{path}: {part.stat().st_size} bytes")
    part.replace(path)
    _forget(part)


def _sidecar(part):
    return Path(f"{part}.json")


def _remember(part, address, headers):
    # A weak ETag ("W/...") promises the same meaning, not the same bytes.
    tag = headers.get("ETag", "")
    validator = tag if tag.startswith('"') else headers.get("Last-Modified")
    _sidecar(part).write_text(json.dumps({"address": address, "validator": validator}), encoding="utf-8")


def _validator_of(part, address):
    try:
        stored = json.loads(_sidecar(part).read_text(encoding="utf-8"))
        validator = stored["validator"] if stored["address"] == address else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return validator if isinstance(validator, str) else None


def _forget(part):
    part.unlink(missing_ok=True)
    _sidecar(part).unlink(missing_ok=True)
