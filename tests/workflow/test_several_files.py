"""An ONNX model whose weights are in a file beside it, from its files to a bundle, and runs after that file changed."""

import onnx
import pytest

from gfscore.core.files import read_json
from gfscore.tables.parquet_tables import read_identity
from helpers import own_files

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(60)]


@pytest.fixture(scope="module")
def repository(fresh_copy, real_data):
    """A copy with a model in two files and images in it."""
    made = fresh_copy()
    own_files.write_data(made.path / "mine", real_data, count=200)
    own_files.write_models(made.path / "mine", real_data)
    whole = made.path / "mine/net.onnx"
    target = made.path / "mine/split.onnx"
    onnx.save(onnx.load(whole), target, save_as_external_data=True, location="split.onnx.data", size_threshold=0)
    return made


def test_all_files_of_a_model_are_audited_handed_on_and_watched(repository):
    code, said = repository.gfscore("audit", "mine/split.onnx", "mine/images.npz", "--minutes", "1", "--dry-run")
    assert code == 0, said
    assert "split.onnx.data" in said
    run = ("--configfile", "audits/split.yaml", "--", "results/audits/split/report.html")
    repository.snakemake(*run)
    (path,) = (repository.path / "results/checkpoints").rglob("split.json")
    manifest = read_json(path)
    assert [file["path"] for file in manifest["files"]] == ["mine/split.onnx", "mine/split.onnx.data"]
    identity = read_identity(repository.path / "results/logits/split/none/split.parquet")
    assert identity["checkpoint_sha256"] == manifest["sha256"]

    code, said = repository.gfscore("bundle", "split", "--with", "networks")
    assert code == 0, said
    assert list((repository.path / "results/bundles/split").rglob("split.onnx.data"))
    code, said = repository.gfscore("verify", "results/bundles/split", "--require", "networks")
    assert code == 0, said

    assert not repository.planned(*run)[0]

    # Other weights behind the same graph: the recorded digest of that file is named.
    data = repository.path / "mine/split.onnx.data"
    content = bytearray(data.read_bytes())
    content[-1] ^= 1
    data.write_bytes(content)
    refused = repository.snakemake(*run, check=False)
    assert refused.returncode != 0 and "split.onnx.data.sha256" in " ".join(refused.text.split())
    (repository.path / "mine/split.onnx.data.sha256").unlink()
    rules, _ = repository.planned(*run)
    assert rules["fetch_checkpoint"] == rules["extract_logits"] == 1
