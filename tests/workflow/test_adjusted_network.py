"""gfscore adjust from files to a network with offsets, which its own audit opens."""

import numpy as np
import pytest
import torch

from gfscore.core.digests import sha256_of_file
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE

pytestmark = pytest.mark.workflow

DEFINITION = """
from torch import nn


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(2048, 100), nn.ReLU(), nn.Linear(100, 10),
    )
"""
"""Network of the checkpoint cnn_a_adv."""

OPTIONS = (
    "--architecture=mine/robust.py:network",
    "--preprocessing=mean=.4914/.4824/.4467,std=.2471/.2435/.2616",
    "--eps=2/255",
    "--minutes=1",
)


@pytest.fixture(scope="module")
def repository(fresh_copy, real_data):
    """A copy with a robust network and its images in it."""
    made = fresh_copy()
    mine = made.path / "mine"
    mine.mkdir()
    (mine / "robust.py").write_text(DEFINITION)
    (mine / "net.pth").write_bytes((real_data / "cifar10/models/cnn_a_adv.pth").read_bytes())
    with np.load(real_data / "cifar10/test_lossless_1017.npz") as file:
        np.savez(mine / "images.npz", x=file["x"][:600].transpose(0, 2, 3, 1), y=file["y"][:600])
    return made


def test_the_written_network_has_the_offsets_that_were_judged(repository):
    command = ("adjust", "mine/net.pth", "mine/images.npz", *OPTIONS)
    code, said = repository.gfscore(*command)
    assert code == 0, said
    path = repository.path / "results/adjusted/net/net-adjusted.pth"
    assert sha256_of_file(path) in said and "gfscore audit results/adjusted/net/net-adjusted.pth" in said

    classes = read_table(repository.path / "results/audits/net/remedy_classes.parquet", CATALOGUE["remedy_classes"])
    before = torch.load(repository.path / "mine/net.pth", weights_only=True)
    after = torch.load(path, weights_only=True)
    np.testing.assert_allclose(after["7.bias"] - before["7.bias"], classes["offset"], atol=1e-6)
    assert {name for name in before if not torch.equal(before[name], after[name])} == {"7.bias"}

    code, said = repository.gfscore(*command)
    assert code == 3 and "net-adjusted.pth: stands already" in said
    code, said = repository.gfscore("audit", str(path), "mine/images.npz", *OPTIONS, "--dry-run")
    assert code == 0, said
