"""Downloads and files of checkpoints, against a server on this machine that misbehaves on request."""

import errno
import fcntl
import hashlib
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pycurl
import pytest
import torch
from safetensors.torch import save

from fetch_checkpoint import fetch_checkpoint
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.networks import downloads
from gfscore.networks.checkpoint_files import prepare_checkpoint, recorded_digest, require_checkpoint
from gfscore.networks.downloads import direct_address, download

CONTENT = save({"weight": torch.arange(5000.0)})
DIGEST = hashlib.sha256(CONTENT).hexdigest()
PAGE = b"<!DOCTYPE html><html><title>Google Drive - Quota exceeded</title></html>"


class Handler(BaseHTTPRequestHandler):
    """Answers with what the server's `script` says next; the last entry repeats."""

    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append(wanted)
        step = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        status, body = step.get("status", 200), step.get("body", CONTENT)
        headers = dict(step.get("headers", {}))
        if status >= 400:
            body = b"busy"
        elif wanted and step.get("ranges", True):
            start = int(wanted[6:-1])
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(body) - 1}/{len(body)}"
            body = body[start:]
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        # Whoever has read enough hangs up.
        with suppress(ConnectionError):
            for byte in body if step.get("slow") else b"":
                self.wfile.write(bytes([byte]))
                threading.Event().wait(0.02)
            step.get("meanwhile", lambda: None)()
            self.wfile.write(body[: step.get("cut")])
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.script, server.asked, server.slept = [{}], [], []
    monkeypatch.setattr(downloads.time, "sleep", server.slept.append)
    server.url = f"http://127.0.0.1:{server.server_port}/model.safetensors"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def fetch(server, path, *, sha256=None):
    download(server.url, path, check=require_checkpoint, sha256=sha256)


def names_in(folder):
    """Names of what lies in a folder, but for locks, which stay."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


# ---- a download ----


def test_a_download_appears_whole_with_nothing_beside_it(server, tmp_path, capsys):
    path = tmp_path / "deep" / "model.safetensors"
    fetch(server, path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT
    assert names_in(path.parent) == ["model.safetensors"]
    assert f"{len(CONTENT)} bytes" in capsys.readouterr().out


CUT = {"cut": 5000}


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        ([CUT, {"cut": 3000}, {}], [None, "bytes=5000-", "bytes=8000-"]),
        # The server knows no ranges, or not this one.
        ([CUT, {"ranges": False}, {}], [None, "bytes=5000-", None]),
        ([CUT, {"status": 416}, {}], [None, "bytes=5000-", None]),
    ],
)
def test_a_cut_connection_is_continued_where_the_server_lets_one(server, tmp_path, script, asked):
    server.script = list(script)
    fetch(server, tmp_path / "m", sha256=DIGEST)
    assert server.asked == asked
    assert (tmp_path / "m").read_bytes() == CONTENT


def test_only_a_pinned_file_is_continued_because_the_server_may_have_another_one_by_then(server, tmp_path):
    server.script = [CUT | {"body": CONTENT[::-1]}, {}]
    fetch(server, tmp_path / "m")
    assert server.asked == [None, None]
    assert (tmp_path / "m").read_bytes() == CONTENT


def test_a_later_run_continues_a_pinned_file_only(server, tmp_path):
    for name, sha256, first in (("a", None, None), ("b", DIGEST, "bytes=5000-")):
        (tmp_path / f"{name}.part").write_bytes(CONTENT[:5000])
        server.asked.clear()
        fetch(server, tmp_path / name, sha256=sha256)
        assert server.asked == [first]
        assert (tmp_path / name).read_bytes() == CONTENT


def test_a_connection_that_hardly_moves_is_given_up_and_continued(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(downloads.OPTIONS, pycurl.LOW_SPEED_TIME, 1)
    server.script = [{"slow": True}, {}]
    fetch(server, tmp_path / "m", sha256=DIGEST)
    assert (tmp_path / "m").read_bytes() == CONTENT
    assert "attempt 1 of 5 failed: Operation too slow" in capsys.readouterr().out
    assert re.fullmatch(r"bytes=\d{2,3}-", server.asked[1])


def test_a_long_download_tells_how_far_it_is(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(downloads, "PROGRESS", 0)
    fetch(server, tmp_path / "m")
    assert "m.part: 0.0 MB" in capsys.readouterr().out


@pytest.mark.parametrize("length", [str(len(CONTENT)), None], ids=["stated", "not stated"])
@pytest.mark.parametrize("limit", ["LARGEST", "half of the free disk"])
def test_a_file_that_is_too_large_is_stopped_and_removed(server, tmp_path, monkeypatch, length, limit):
    server.script = [{"headers": {"Content-Length": length}}]
    fetch(server, tmp_path / "m")
    if limit == "LARGEST":
        monkeypatch.setattr(downloads, "LARGEST", len(CONTENT) - 1)
    else:
        monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * len(CONTENT) - 2))
    with pytest.raises(InputError, match=r"more than 0\.00 GB.*half of the free disk.*by hand"):
        fetch(server, tmp_path / "n")
    assert names_in(tmp_path) == ["m"]


def test_busy_servers_are_asked_again_with_growing_pauses(server, tmp_path, capsys):
    server.script = [{"status": 503}, {"status": 429}, {"status": 500}, {}]
    fetch(server, tmp_path / "m", sha256=DIGEST)
    assert server.slept == [0, 5, 10, 20]
    assert "attempt 1 of 5 failed: The requested URL returned error: 503" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "attempts", "message"),
    [
        (503, 5, r"m: could not be downloaded from .* in 5 attempts \(.*503.*by hand"),
        (404, 1, "404; check `url`"),
    ],
)
def test_a_server_that_does_not_give_the_file_is_given_up(server, tmp_path, status, attempts, message):
    server.script = [{"status": status}]
    with pytest.raises(InputError, match=message):
        fetch(server, tmp_path / "m")
    assert len(server.asked) == attempts
    assert names_in(tmp_path) == []


def test_a_refused_connection_is_tried_again_and_named(server, tmp_path):
    with pytest.raises(InputError, match=r"in 5 attempts \(.*connect"):
        download("http://127.0.0.1:9/m", tmp_path / "m", check=require_checkpoint)
    assert len(server.slept) == 5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (PAGE, "is a web page, not a checkpoint"),
        (b"\n  <html>sign in</html>", "is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (CONTENT[:-4], "which contradicts its safetensors header"),
        (b'{"error": "no such file"}', "is no PyTorch, safetensors or ONNX file"),
        (b"PK\x03\x04 cut short", "is a truncated PyTorch file"),
        (b"", "is empty"),
        (save({"weight": torch.zeros(3)}), f"has sha256 .*, expected {DIGEST[:12]}; correct the digest"),
    ],
)
def test_what_is_not_the_checkpoint_is_set_aside(server, tmp_path, body, message):
    for _ in range(2):
        server.script = [{"body": body}]
        with pytest.raises(InputError, match=rf"{message}.*kept as .*m\.rejected-download"):
            fetch(server, tmp_path / "m", sha256=DIGEST)
        assert names_in(tmp_path) == ["m.rejected-download"]
    assert server.asked == [None, None]


# ---- addresses ----


def test_redirects_lead_to_http_alone(server, tmp_path):
    server.script = [{"status": 302, "headers": {"Location": "/elsewhere"}}, {}]
    fetch(server, tmp_path / "m", sha256=DIGEST)
    for number, away in enumerate(("ftp://127.0.0.1:1/model", "file:///etc/passwd", "http://[::1/model")):
        server.script = [{"status": 302, "headers": {"Location": away}}]
        with pytest.raises(InputError, match=r"in redirect|redirect target"):
            fetch(server, tmp_path / "n")
        assert len(server.asked) == 3 + number


def test_keys_in_addresses_are_not_told(server, tmp_path, capsys):
    def told(script, url=server.url):
        server.script = script
        with pytest.raises(InputError) as refused:
            download(f"{url}?key=secret", tmp_path / "m", check=lambda *_: None, sha256="0" * 64)
        return str(refused.value)

    away = {"status": 302, "headers": {"Location": "ftp://127.0.0.1/m?key=secret"}}
    words = [told([{"status": 404}]), told([{"status": 503}]), told([{}]), told([away]), capsys.readouterr().out]
    words += [told([{}], "http://127.0.0.1:9/m"), told([{"cut": 5000}])]
    assert all("?..." in text and "secret" not in text for text in words)


@pytest.mark.parametrize("url", ["http://[::1", "file:///etc/passwd", "ftp://127.0.0.1/m"])
def test_what_is_no_http_address_is_refused(server, tmp_path, url):
    with pytest.raises(InputError, match=r"no valid URL|is disabled"):
        download(url, tmp_path / "m", check=None)
    assert server.slept in ([], [0])


def test_addresses_may_hold_any_letter(server, tmp_path):
    for name in ("Modèle.pt", "a b.pt?name=a b", "%C3%A8.pt"):
        download(server.url.replace("model.safetensors", name), tmp_path / "m", check=require_checkpoint)
        (tmp_path / "m").unlink()
    assert direct_address("https://modèle.org/m") == "https://xn--modle-6ra.org/m"


def test_redirects_without_end_are_given_up_at_once(server, tmp_path):
    server.script = [{"status": 302, "headers": {"Location": "/again"}}]
    with pytest.raises(InputError, match="redirects"):
        fetch(server, tmp_path / "m")
    assert server.slept == [0]


def test_addresses_of_google_drive_lead_to_the_file():
    file = "https://drive.usercontent.google.com/download?id=1a-B_c&export=download&confirm=t"
    assert direct_address("https://drive.google.com/file/d/1a-B_c/view?usp=sharing") == file
    assert direct_address("https://drive.google.com/uc?export=download&id=1a-B_c") == file
    assert direct_address("https://DRIVE.google.com:443/uc?id=1a-B_c") == file
    assert direct_address("https://example.org/m.pt") == "https://example.org/m.pt"
    with pytest.raises(InputError, match="names no file on Google Drive"):
        direct_address("https://drive.google.com/drive/")


# ---- several jobs ----


def test_two_jobs_that_want_one_file_fetch_it_once(server, tmp_path):
    path = tmp_path / "new" / "m.safetensors"
    busy, never = threading.Event(), threading.Event()

    def hold():
        busy.set()
        # time.sleep is not what it was here.
        never.wait(1)

    server.script = [{"meanwhile": hold}]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(prepare_checkpoint, path, url=server.url)
        assert busy.wait(10)
        second = pool.submit(prepare_checkpoint, path, url=server.url)
        assert (first.result(), second.result()) == (DIGEST, DIGEST)
    assert len(server.asked) == 1
    assert names_in(path.parent) == ["m.safetensors", "m.safetensors.sha256"]
    assert recorded_digest(path) == DIGEST


def test_a_lock_left_by_a_killed_job_holds_nobody_up(server, tmp_path):
    (tmp_path / "m.lock").touch()
    assert prepare_checkpoint(tmp_path / "m", url=server.url, sha256=DIGEST) == DIGEST


def test_a_disk_that_refuses_locks_or_files_is_named(server, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file: cannot be written or locked \(File exists\)"):
        fetch(server, tmp_path / "file" / "m")
    (tmp_path / "m.part").mkdir()
    with pytest.raises(InputError, match=r"m\.part: cannot be written or locked \(Is a directory\)"):
        fetch(server, tmp_path / "m")

    def refused(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(InputError, match=r"cannot be written or locked \(Input/output error\); .*supports locks"):
        fetch(server, tmp_path / "n")
    assert server.asked == []


# ---- a checkpoint ----


IDENTITY = {"dataset": "zoo", "threat": "L2", "model": "Mine"}


def entry(path, **changes):
    settings = {"source": "torch", "path": str(path), "url": None, "sha256": None, "trust_pickle": False}
    return {**settings, "architecture": "architectures.mine:Net", **changes}


def test_a_missing_file_is_downloaded_once(server, tmp_path):
    path = tmp_path / "m.safetensors"
    settings = entry(path, url=server.url, sha256=DIGEST.upper())
    for _ in range(2):
        fetch_checkpoint(settings, tmp_path / "m.json", identity=IDENTITY)
    assert len(server.asked) == 1
    assert read_json(tmp_path / "m.json")["pinned"] is True
    assert names_in(tmp_path) == ["m.json", "m.safetensors"], "nothing is recorded beside a pinned file"


def test_trusting_a_pickle_needs_a_pin_before_anything_is_fetched(server, tmp_path):
    settings = entry(tmp_path / "m.pt", url=server.url, trust_pickle=True)
    with pytest.raises(InputError, match=r"zoo/L2/Mine: .* its sha256 must be pinned"):
        fetch_checkpoint(settings, tmp_path / "m.json", identity=IDENTITY)
    assert server.asked == []
