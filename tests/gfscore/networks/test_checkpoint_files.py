"""Digests of checkpoints, and what is refused before anything is parsed."""

import hashlib
import os

import pytest
import torch
from safetensors.torch import save

from fetch_checkpoint import fetch_checkpoint
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.networks import checkpoint_files
from gfscore.networks.checkpoint_files import prepare_checkpoint, require_digest

CONTENT = save({"weight": torch.arange(5000.0)})


DIGEST = hashlib.sha256(CONTENT).hexdigest()


PAGE = b"<!DOCTYPE html><html><title>Google Drive - Quota exceeded</title></html>"


def names_in(folder):
    """Names of what lies in a folder, but for locks, which stay."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


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


OTHER = save({"weight": torch.zeros(3)})


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:9/m"])
@pytest.mark.parametrize(
    ("content", "sha256", "message"),
    [
        (OTHER, DIGEST, f"but {DIGEST[:12]} is pinned .*put the right file in place, .*correct the pin"),
        (
            OTHER,
            None,
            rf"but {DIGEST[:12]} is recorded in m\.safetensors\.sha256; put the right file in place, .*delete ",
        ),
        (PAGE, None, "is a web page.*download it in a browser and put it in place"),
    ],
)
def test_a_refused_file_may_be_the_only_copy_and_stays(tmp_path, content, sha256, message, url):
    path = tmp_path / "shared.safetensors"
    path.write_bytes(content)
    link = tmp_path / "m.safetensors"
    link.symlink_to(path.name)
    (tmp_path / "m.safetensors.sha256").write_text(f"{DIGEST}  m.safetensors\n")
    with pytest.raises(InputError, match=f"{message}{'.*to download it again, move it away' if url else ''}"):
        prepare_checkpoint(link, url=url, sha256=sha256)
    assert link.is_symlink()
    assert path.read_bytes() == content


def test_with_pin_or_record_corrected_a_refused_file_is_used(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(CONTENT)
    with pytest.raises(InputError, match="is pinned"):
        prepare_checkpoint(path, sha256="0" * 64)
    assert prepare_checkpoint(path, sha256=DIGEST) == prepare_checkpoint(path) == DIGEST
    path.write_bytes(OTHER)
    with pytest.raises(InputError, match="is recorded"):
        prepare_checkpoint(path)
    (tmp_path / "m.safetensors.sha256").unlink()
    assert prepare_checkpoint(path) == hashlib.sha256(OTHER).hexdigest()


def test_a_missing_file_without_an_address_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"m\.pt: there is no such checkpoint, and the entry has no url; put the file"):
        fetch_checkpoint(entry(tmp_path / "m.pt"), tmp_path / "m.json", identity=IDENTITY)
    assert names_in(tmp_path) == []


def test_damaged_records_and_read_only_folders_are_named(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    path.write_bytes(CONTENT)
    record = tmp_path / "m.safetensors.sha256"
    record.write_text("garbage")
    with pytest.raises(InputError, match="holds no sha256; delete it"):
        prepare_checkpoint(path)
    record.unlink()

    def read_only(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint_files, "write_text", read_only)
    with pytest.raises(InputError, match=r"m\.safetensors\.sha256: cannot be written \(Permission denied\)"):
        prepare_checkpoint(path)


def test_pipes_and_folders_are_refused_where_they_are(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(InputError, match=f"{name}: is no regular file but a {name}"):
            prepare_checkpoint(tmp_path / name)
        with pytest.raises(InputError, match=f"{name}: is no regular file but a {name}"):
            require_digest(tmp_path / name, "0" * 64)
    (tmp_path / "m").write_bytes(CONTENT)
    os.mkfifo(tmp_path / "m.sha256")
    with pytest.raises(InputError, match=r"m\.sha256: is no regular file"):
        prepare_checkpoint(tmp_path / "m")
    assert names_in(tmp_path) == ["folder", "m", "m.sha256", "pipe"]


def test_a_digest_is_compared_without_parsing(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"anything")
    require_digest(path, hashlib.sha256(b"anything").hexdigest().upper())
    # Whoever placed it by hand has no other copy to be made again.
    remedy = "delete it and run again; if you put it there, restore the right file"
    with pytest.raises(InputError, match=rf"m: sha256 is .* expected 000000000000.* {remedy}"):
        require_digest(path, "0" * 64)


def test_fetching_loads_no_torch():
    """Except of programs, whose own module checks their files."""
    import subprocess
    import sys

    code = """
import sys
import fetch_checkpoint
from gfscore.networks.model_source import files_module_of, model_sources

for name, source in model_sources().items():
    if source.fetched and name != "program":
        files_module_of(name)
sys.exit(any(name in sys.modules for name in ("torch", "pandas")))
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
