"""Downloads and files of checkpoints, against a server on this machine that misbehaves on request."""

import hashlib
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save

from fetch_checkpoint import fetch_checkpoint
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.networks import checkpoint_files, downloads
from gfscore.networks.checkpoint_files import obtain, recorded_digest, require_checkpoint, require_digest
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
        if status >= 400:
            return self._answer(status, {"Retry-After": step.get("retry_after", "0")}, b"busy")
        headers = step.get("headers", {}) | ({"ETag": step["etag"]} if step.get("etag") else {})
        if step.get("slow"):
            return self._answer(status, headers, body, slow=True)
        if wanted and step.get("ranges", True):
            start = step.get("start", int(wanted[6:-1]))
            if self.headers.get("If-Range", step.get("etag")) == step.get("etag"):
                headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
                return self._answer(206, headers, body[start:], cut=step.get("cut"))
        return self._answer(status, headers, body, cut=step.get("cut"), meanwhile=step.get("meanwhile", lambda: None))

    def _answer(self, status, headers, body, *, cut=None, meanwhile=lambda: None, slow=False):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        # Whoever has read enough hangs up.
        with suppress(ConnectionError):
            for byte in body if slow else b"":
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                threading.Event().wait(0.02)
            self.wfile.write(body[: len(body) // 2][:cut])
            self.wfile.flush()
            meanwhile()
            self.wfile.write(body[len(body) // 2 : cut])
            self.wfile.flush()
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


def fetch(server, path, **changes):
    download(server.url, path, check=require_checkpoint, **{"sha256": None, "timeout": 5, **changes})


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_download_appears_whole_with_nothing_beside_it(server, tmp_path, capsys):
    path = tmp_path / "deep" / "model.safetensors"
    fetch(server, path, sha256=DIGEST)
    assert path.read_bytes() == CONTENT
    assert names_in(path.parent) == ["model.safetensors"]
    assert f"{len(CONTENT)} bytes" in capsys.readouterr().out


def test_busy_servers_are_asked_again_with_growing_pauses(server, tmp_path, capsys):
    server.script = [{"status": 503}, {"status": 429, "retry_after": "7"}, {"status": 500}, {}]
    fetch(server, tmp_path / "m", sha256=DIGEST)
    assert server.slept == [1.0, 7.0, 4.0]
    assert "attempt 1 of 5 failed: HTTP 503" in capsys.readouterr().out


def test_a_server_that_stays_busy_is_given_up(server, tmp_path):
    server.script = [{"status": 503}]
    with pytest.raises(InputError, match=r"could not be downloaded in 3 attempts \(HTTP 503.*put it in place by hand"):
        fetch(server, tmp_path / "m", attempts=3)
    assert len(server.asked) == 3
    assert names_in(tmp_path) == []


def test_a_missing_page_is_final(server, tmp_path):
    server.script = [{"status": 404}]
    with pytest.raises(InputError, match=r"HTTP 404 .*check the url in config\.yaml"):
        fetch(server, tmp_path / "m")
    assert len(server.asked) == 1


def test_a_cut_connection_is_resumed_where_the_server_lets_one(server, tmp_path):
    server.script = [{"cut": 5000, "etag": '"v1"'}, {"etag": '"v1"', "cut": 3000}, {"etag": '"v1"'}]
    fetch(server, tmp_path / "m")
    assert server.asked == [None, "bytes=5000-", "bytes=8000-"]
    assert (tmp_path / "m").read_bytes() == CONTENT


def test_a_connection_that_hardly_moves_is_given_up_and_resumed(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(downloads, "RATE_PERIOD", 0.2)
    server.script = [{"slow": True, "etag": '"v1"'}, {"etag": '"v1"'}]
    fetch(server, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == CONTENT
    assert re.search(r"attempt 1 of 5 failed: only \d{1,2} bytes came in", capsys.readouterr().out)
    assert re.fullmatch(r"bytes=\d{1,2}-", server.asked[1])


def test_a_body_without_length_or_end_is_stopped_and_removed(server, tmp_path, monkeypatch):
    server.script = [{"headers": {"Content-Length": None}}]
    fetch(server, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == CONTENT
    monkeypatch.setattr(downloads, "LARGEST_UNDECLARED", len(CONTENT) - 1)
    with pytest.raises(InputError, match=r"GB came without an end, and the server states no length .*by hand"):
        fetch(server, tmp_path / "n")
    monkeypatch.setattr(downloads, "LARGEST_UNDECLARED", 1 << 34)
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * len(CONTENT) - 2))
    with pytest.raises(InputError, match=r"GB came without an end.*half of the free disk"):
        fetch(server, tmp_path / "n")
    assert names_in(tmp_path) == ["m"]


def test_numbers_of_a_server_that_are_none_are_ignored(server, tmp_path):
    server.script = [{"status": 503, "retry_after": "\u00b2"}, {"headers": {"Content-Length": "\u00b2"}}]
    fetch(server, tmp_path / "m", sha256=DIGEST)
    assert server.slept == [1.0]


def test_redirects_lead_to_http_alone(server, tmp_path):
    server.script = [{"status": 302, "headers": {"Location": "/elsewhere"}}, {}]
    fetch(server, tmp_path / "m", sha256=DIGEST)
    server.script = [{"status": 302, "headers": {"Location": "ftp://127.0.0.1:1/model"}}]
    with pytest.raises(InputError, match=r"leads to 'ftp://127\.0\.0\.1:1/model', no http or https address"):
        fetch(server, tmp_path / "n")
    assert len(server.asked) == 3
    server.script = [{"status": 302, "headers": {"Location": "http://[::1/model"}}]
    with pytest.raises(InputError, match="is or leads to no address"):
        fetch(server, tmp_path / "o")


def test_keys_in_addresses_are_not_told(server, tmp_path, capsys):
    def told(script):
        server.script = script
        with pytest.raises(InputError) as refused:
            download(f"{server.url}?key=secret", tmp_path / "m", check=lambda *_: None, sha256="0" * 64, attempts=1)
        return str(refused.value)

    away = {"status": 302, "headers": {"Location": "ftp://127.0.0.1/m?key=secret"}}
    words = [told([{"status": 404}]), told([{"status": 503}]), told([{}]), told([away]), capsys.readouterr().out]
    assert all("?..." in text and "secret" not in text for text in words)


def test_names_of_hosts_that_cannot_be_are_refused(tmp_path):
    for host in ("a..b", 64 * "a"):
        with pytest.raises(InputError, match="is or leads to no address"):
            download(f"http://{host}/x", tmp_path / "m", check=None)


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(server, tmp_path):
    server.script = [{"cut": 5000, "etag": '"v1"', "body": CONTENT[::-1]}, {"etag": '"v2"'}]
    fetch(server, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == CONTENT


def test_without_a_version_only_a_pinned_file_is_resumed(server, tmp_path):
    server.script = [{"cut": 5000}, {}]
    fetch(server, tmp_path / "a")
    assert server.asked == [None, None]
    server.script, server.asked[:] = [{"cut": 5000}, {}], []
    fetch(server, tmp_path / "b", sha256=DIGEST)
    assert server.asked == [None, "bytes=5000-"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == CONTENT


def test_servers_without_ranges_or_with_wrong_ones_start_over(server, tmp_path):
    server.script = [{"cut": 5000, "etag": '"v"'}, {"ranges": False, "etag": '"v"'}]
    fetch(server, tmp_path / "a")
    server.script = [{"cut": 5000, "etag": '"v"'}, {"etag": '"v"', "start": 10}, {"etag": '"v"'}]
    fetch(server, tmp_path / "b")
    server.script = [{"cut": 5000, "etag": '"v"'}, {"status": 416}, {"etag": '"v"'}]
    fetch(server, tmp_path / "c")
    assert {(tmp_path / name).read_bytes() for name in "abc"} == {CONTENT}


def test_a_later_run_goes_on_where_the_last_one_stopped(server, tmp_path):
    server.script = [{"cut": 5000, "etag": '"v"'}]
    with pytest.raises(InputError, match=r"run again to go on where it stopped"):
        fetch(server, tmp_path / "m", attempts=1)
    assert names_in(tmp_path) == ["m.part", "m.part.json"]
    server.script, server.asked[:] = [{"etag": '"v"'}], []
    fetch(server, tmp_path / "m")
    assert server.asked == ["bytes=5000-"]
    assert names_in(tmp_path) == ["m"]


def test_a_part_that_another_program_changes_is_fetched_anew(server, tmp_path):
    part = tmp_path / "m.part"

    def lengthen():
        while not part.exists():
            pass
        os.truncate(part, len(CONTENT) + 7)

    # No check knows what to expect, so the size alone shows it.
    server.script = [{"meanwhile": lengthen}, {}]
    download(server.url, tmp_path / "m", check=lambda *_: None)
    assert (tmp_path / "m").read_bytes() == CONTENT
    assert server.asked == [None, None]


def test_two_jobs_that_want_one_file_fetch_it_once(server, tmp_path, capsys):
    path = tmp_path / "new" / "m.safetensors"
    busy, never = threading.Event(), threading.Event()

    def hold():
        busy.set()
        # time.sleep is not what it was here.
        never.wait(1)

    server.script = [{"meanwhile": hold}]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(obtain, path, url=server.url)
        assert busy.wait(10)
        second = pool.submit(obtain, path, url=server.url)
        assert (first.result(), second.result()) == (DIGEST, DIGEST)
    assert len(server.asked) == 1
    assert "another job works on this file: waiting" in capsys.readouterr().out
    assert names_in(path.parent) == ["m.safetensors", "m.safetensors.sha256"]
    assert recorded_digest(path) == DIGEST


def test_a_lock_left_by_a_killed_job_holds_nobody_up(server, tmp_path):
    (tmp_path / "m.lock").touch()
    assert obtain(tmp_path / "m", url=server.url, sha256=DIGEST) == DIGEST
    assert names_in(tmp_path) == ["m"]


def test_a_refused_connection_is_retried_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads.time, "sleep", lambda _: None)
    with pytest.raises(InputError, match=r"in 2 attempts \(.*refused"):
        download("http://127.0.0.1:9/m", tmp_path / "m", check=require_checkpoint, attempts=2, timeout=2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (PAGE, "is a web page, not a checkpoint"),
        (b"\n  <html>sign in</html>", "is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (CONTENT[:-4], "another number than its safetensors header announces"),
        (b'{"error": "no such file"}', "is no PyTorch, safetensors or ONNX file"),
        (b"PK\x03\x04 cut short", "is a PyTorch file cut short"),
        (b"", "is empty"),
    ],
)
def test_what_is_no_checkpoint_is_set_aside(server, tmp_path, body, message):
    server.script = [{"body": body}]
    with pytest.raises(InputError, match=message) as caught:
        fetch(server, tmp_path / "m")
    assert "m.rejected-download" in str(caught.value)
    assert names_in(tmp_path) == ["m.rejected-download"]
    assert len(server.asked) == 1


def test_another_file_than_the_pinned_one_is_set_aside(server, tmp_path):
    with pytest.raises(InputError, match=f"has sha256 {DIGEST[:12]}, expected 000000000000; correct the url"):
        fetch(server, tmp_path / "m", sha256="0" * 64)
    assert names_in(tmp_path) == ["m.rejected-download"]


def test_addresses():
    file = "https://drive.usercontent.google.com/download?id=1a-B_c&export=download&confirm=t"
    assert direct_address("https://drive.google.com/file/d/1a-B_c/view?usp=sharing") == file
    assert direct_address("https://drive.google.com/uc?export=download&id=1a-B_c") == file
    assert direct_address("https://example.org/m.pt") == "https://example.org/m.pt"
    for bad in ("file:///etc/passwd", "ftp://example.org/m", "m.pt"):
        with pytest.raises(InputError, match="is no http or https address"):
            direct_address(bad)
    assert direct_address("http://example.org/mod\u00e8le%20a b.pt?x=\u00e9&y=1") == (
        "http://example.org/mod%C3%A8le%20a%20b.pt?x=%C3%A9&y=1"
    )
    with pytest.raises(InputError, match=r"is no address .*Invalid IPv6 URL"):
        direct_address("http://[::1")
    with pytest.raises(InputError, match="names no file on Google Drive"):
        direct_address("https://drive.google.com/drive/")


IDENTITY = {"dataset": "zoo", "threat": "L2", "model": "Mine"}


def entry(path, **changes):
    settings = {"source": "torch", "path": str(path), "url": None, "sha256": None, "trust_pickle": False}
    return {**settings, "architecture": "architectures.mine:Net", **changes}


def test_a_file_placed_by_hand_is_described_and_its_digest_recorded(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(CONTENT)
    fetch_checkpoint(entry(path), tmp_path / "m.json", identity=IDENTITY)
    manifest = read_json(tmp_path / "m.json")
    assert {key: manifest[key] for key in IDENTITY} == IDENTITY
    assert (manifest["sha256"], manifest["path"], manifest["source"]) == (DIGEST, str(path), "torch")
    assert manifest["architecture"] == "architectures.mine:Net"
    assert manifest["files"] == [{"path": str(path), "sha256": DIGEST}]
    assert manifest["settings"] == entry(path)
    assert manifest["pinned"] is False
    assert "architecture_sha256" not in manifest
    assert (tmp_path / "m.safetensors.sha256").read_text() == f"{DIGEST}  m.safetensors\n"


def test_the_recorded_digest_is_enforced_and_a_file_of_the_user_stays(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(CONTENT)
    obtain(path)
    other = save({"weight": torch.zeros(3)})
    path.write_bytes(other)
    with pytest.raises(InputError, match=r"recorded in m.safetensors.sha256: the file changed .* delete that record"):
        obtain(path)
    assert path.read_bytes() == other
    (tmp_path / "m.safetensors.sha256").unlink()
    assert obtain(path) == hashlib.sha256(other).hexdigest()


@pytest.mark.parametrize(
    ("content", "message"),
    [(CONTENT, "pinned in config.yaml: the file is damaged or another one"), (PAGE, "is a web page")],
)
def test_a_refused_file_that_has_an_address_is_set_aside_and_fetched_anew(server, tmp_path, content, message):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{message}.*set aside as .*m\.safetensors\.rejected"):
        obtain(path, url=server.url, sha256="0" * 64)
    assert (names_in(tmp_path), server.asked) == (["m.safetensors.rejected"], [])
    assert (tmp_path / "m.safetensors.rejected").read_bytes() == content
    assert obtain(path, url=server.url, sha256=DIGEST) == DIGEST
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT, r"pinned in config\.yaml.* left in place, unused; correct `sha256` of the entry, or put the right"),
        (PAGE, "is a web page.* left in place, unused$"),
    ],
)
def test_a_refused_file_without_an_address_may_be_the_only_copy_and_stays(tmp_path, content, message):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(InputError, match=message) as caught:
            obtain(path, sha256="0" * 64)
        assert "fetch it anew" not in str(caught.value)
        assert (names_in(tmp_path), path.read_bytes()) == (["m.safetensors"], content)


def test_with_the_pin_corrected_a_file_placed_by_hand_is_used(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(CONTENT)
    with pytest.raises(InputError, match=r"pinned in config\.yaml"):
        obtain(path, sha256="0" * 64)
    assert obtain(path, sha256=DIGEST) == DIGEST


def test_a_refused_link_stays_a_link_with_and_without_an_address(server, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/m").write_bytes(CONTENT)
    path = tmp_path / "m.safetensors"
    path.symlink_to("shared/m")
    for url in (None, server.url):
        with pytest.raises(InputError, match="left in place, unused; correct `sha256`"):
            obtain(path, url=url, sha256="0" * 64)
        assert path.is_symlink()
        assert path.read_bytes() == CONTENT
    assert (names_in(tmp_path), server.asked) == (["m.safetensors", "shared"], [])


def test_a_missing_file_that_was_set_aside_earlier_is_named(tmp_path):
    (tmp_path / "m.rejected").write_bytes(CONTENT)
    with pytest.raises(InputError, match=r"there is no such checkpoint.*refused earlier: \S*m\.rejected; .* rename it"):
        obtain(tmp_path / "m", sha256=DIGEST)


def test_what_was_set_aside_earlier_is_never_replaced(server, tmp_path):
    path = tmp_path / "m"
    # By hand first, where the same content twice is kept once; then downloads, of which only the last stays.
    other = save({"weight": torch.zeros(3)})
    for content, kept in ((CONTENT, "m.rejected"), (other, "m.rejected-2"), (CONTENT, "m.rejected")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"set aside as \S*{kept}; run again"):
            obtain(path, url=server.url, sha256="0" * 64)
    for page in (PAGE + b" ", PAGE):
        server.script = [{"body": page}]
        with pytest.raises(InputError, match=r"set aside as \S*m\.rejected-download$"):
            fetch(server, path)
    assert names_in(tmp_path) == ["m.rejected", "m.rejected-2", "m.rejected-download"]
    assert [(tmp_path / name).read_bytes() for name in names_in(tmp_path)] == [CONTENT, other, PAGE]
    with pytest.raises(
        InputError, match=r"refused earlier: \S*m\.rejected and \S*m\.rejected-2 and \S*m\.rejected-download; if"
    ):
        obtain(path)


def test_what_cannot_be_read_is_not_taken_for_the_same(server, tmp_path):
    (tmp_path / "m.rejected").symlink_to(tmp_path / "nothing")
    (tmp_path / "m").write_bytes(CONTENT)
    with pytest.raises(InputError, match=r"set aside as \S*m\.rejected-2; run again"):
        obtain(tmp_path / "m", url=server.url, sha256="0" * 64)


def test_a_missing_file_is_downloaded_once(server, tmp_path):
    path = tmp_path / "m.safetensors"
    settings = entry(path, url=server.url, sha256=DIGEST.upper())
    for _ in range(2):
        fetch_checkpoint(settings, tmp_path / "m.json", identity=IDENTITY)
    assert len(server.asked) == 1
    assert read_json(tmp_path / "m.json")["pinned"] is True
    assert names_in(tmp_path) == ["m.json", "m.safetensors"], "nothing is recorded beside a pinned file"


def test_a_missing_file_without_an_address_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"m\.pt: there is no such checkpoint, and the entry has no url; put the file"):
        fetch_checkpoint(entry(tmp_path / "m.pt"), tmp_path / "m.json", identity=IDENTITY)
    assert names_in(tmp_path) == []


def test_trusting_a_pickle_needs_a_pin_before_anything_is_fetched(server, tmp_path):
    settings = entry(tmp_path / "m.pt", url=server.url, trust_pickle=True)
    with pytest.raises(InputError, match=r"zoo/L2/Mine: .* its sha256 must be pinned"):
        fetch_checkpoint(settings, tmp_path / "m.json", identity=IDENTITY)
    assert server.asked == []


def test_damaged_records_and_read_only_folders_are_named(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    path.write_bytes(CONTENT)
    record = tmp_path / "m.safetensors.sha256"
    record.write_text("garbage")
    with pytest.raises(InputError, match="holds no sha256; delete it"):
        obtain(path)
    record.unlink()

    def read_only(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint_files, "write_text", read_only)
    with pytest.raises(InputError, match=r"m\.safetensors\.sha256: cannot be written \(Permission denied\)"):
        obtain(path)


def test_pipes_and_folders_are_refused_where_they_are(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(InputError, match=f"{name}: is no regular file but a {name}"):
            obtain(tmp_path / name)
        with pytest.raises(InputError, match=f"{name}: is no regular file but a {name}"):
            require_digest(tmp_path / name, "0" * 64)
    (tmp_path / "m").write_bytes(CONTENT)
    os.mkfifo(tmp_path / "m.sha256")
    with pytest.raises(InputError, match=r"m\.sha256: is no regular file"):
        obtain(tmp_path / "m")
    assert names_in(tmp_path) == ["folder", "m", "m.sha256", "pipe"]


def test_a_digest_is_compared_without_parsing(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"anything")
    require_digest(path, hashlib.sha256(b"anything").hexdigest().upper())
    # Whoever placed it by hand has no other copy to be made again.
    remedy = "delete it, so that it comes again; if you put it there, put the right one back"
    with pytest.raises(InputError, match=rf"m: sha256 is .* expected 000000000000.* {remedy}"):
        require_digest(path, "0" * 64)


def test_fetching_loads_no_torch():
    import subprocess
    import sys

    code = "import fetch_checkpoint, gfscore.networks.opening, sys; sys.exit(any(n in sys.modules for n in ('torch', 'pandas')))"
    assert (
        subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=False).returncode
        == 0
    )
