"""Reading weights from untrusted files: what real checkpoints hold is read, what could run code is refused unrun."""

import argparse
import collections
import io
import os
import pathlib
import pickle
import types
import zipfile

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.networks.checkpoints import ALLOWED, AVERAGED, WRAPPERS, load_checkpoint, load_weights, weights_of

PLAIN = {"trust_pickle": False, "sha256": None}
WEIGHTS = {"0.weight": torch.arange(6.0).reshape(2, 3), "0.bias": torch.ones(2)}


class Creates:
    """Unpickling this would create a file."""

    def __init__(self, path, how="open"):
        self.path, self.how = str(path), how

    def __reduce__(self):
        if self.how == "system":
            return os.system, (f"touch {self.path}",)
        if self.how == "eval":
            return eval, (f"open({self.path!r}, 'w')",)
        if self.how == "exec in torch":
            return torch.serialization._maybe_decode_ascii.__globals__["pickle"].loads, (
                pickle.dumps(Creates(self.path)),
            )
        return open, (self.path, "w")


def refused(path, match):
    with pytest.raises(InputError, match=match) as caught:
        load_checkpoint(PLAIN, path)
    assert path.name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("how", ["open", "system", "eval", "exec in torch"])
@pytest.mark.parametrize("layout", ["zip", "legacy", "bare", "protocol 4"])
def test_a_malicious_pickle_runs_nothing_and_the_message_says_why(tmp_path, how, layout):
    path, trace = tmp_path / "evil.pth", tmp_path / "it-ran"
    content = {"state_dict": WEIGHTS, "epoch": Creates(trace, how)}
    if layout in ("bare", "protocol 4"):
        path.write_bytes(pickle.dumps({"epoch": content["epoch"]}, protocol=4 if layout == "protocol 4" else 2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=layout == "zip")
    names = {"open": "io.open", "system": "posix.system", "eval": "eval", "exec in torch": "pickle.loads"}
    asked = "a pickle protocol above 2" if layout == "protocol 4" else f"{names[how]}, .*trust_pickle: true and pin"
    refused(path, f"nothing in it was run: .*{asked}")
    assert not trace.exists()


def test_the_trap_works_when_it_is_unpickled(tmp_path):
    pickle.loads(pickle.dumps(Creates(tmp_path / "it-ran")))
    assert (tmp_path / "it-ran").exists()


def test_numpy_files_torchscript_and_renamed_archives_run_nothing(tmp_path):
    trace = tmp_path / "it-ran"
    arrays = tmp_path / "array.pth"
    with arrays.open("wb") as file:
        np.save(file, np.array([Creates(trace)], dtype=object), allow_pickle=True)
    refused(arrays, "damaged or truncated, no PyTorch checkpoint")
    script = tmp_path / "script.pt"
    torch.jit.script(nn.Linear(2, 2)).save(str(script))
    refused(script, r"TorchScript .* torch\.save\(torch\.jit\.load\(path\)\.state_dict\(\), other_path\)")
    torch.save(torch.jit.load(script).state_dict(), tmp_path / "weights.pt")
    assert set(load_checkpoint(PLAIN, tmp_path / "weights.pt")) == {"weight", "bias"}
    refused(planted(tmp_path, pickle.dumps(Creates(trace))), "nothing in it was run")
    # A numpy array of objects inside an allowed one: the stand-in takes the pickle as bytes, and drops it.
    nested = tmp_path / "nested.pt"
    torch.save({"state_dict": WEIGHTS, "log": np.array([Creates(trace)], dtype=object)}, nested)
    refused(nested, "nothing in it was run")
    assert not trace.exists()


def planted(folder, stream):
    """A file of torch.save whose pickle is another one."""
    inside, path = folder / "inside.pt", folder / "planted.pt"
    torch.save(WEIGHTS, inside)
    with zipfile.ZipFile(inside) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, stream if name.endswith("data.pkl") else old.read(name))
    return path


def test_what_is_allowed_is_never_built(tmp_path):
    """A pickle that gives allowed names hostile arguments and state gets inert stand-ins."""
    made = b"cargparse\nNamespace\n)\x81"
    state = b"}X\x09\x00\x00\x00__class__cpathlib\nPosixPath\ns"
    value = load_checkpoint(PLAIN, planted(tmp_path, b"\x80\x02" + made + state + b"b."))
    assert type(value).__name__ == "_Unused"
    assert vars(value) == {}
    # A numpy array over raw memory that is to be read as pointers to objects.
    array = b"\x80\x02cnumpy\nndarray\nK\x01\x85X\x01\x00\x00\x00OX\x08\x00\x00\x00AAAAAAAA\x87R."
    assert type(load_checkpoint(PLAIN, planted(tmp_path, array))).__name__ == "_Unused"
    assert all(ALLOWED.values()), "every allowed name has its reason"


def test_a_newer_pickle_protocol_is_named(tmp_path):
    path = tmp_path / "new.pt"
    torch.save(WEIGHTS, path, pickle_protocol=4)
    refused(path, "pickle protocol above 2")


def test_real_extras_are_read_over(tmp_path):
    extras = {
        "args": argparse.Namespace(lr=0.1, out=pathlib.PurePosixPath("runs")),
        "more": types.SimpleNamespace(a=1),
        "best": np.float64(0.93),
        "history": np.arange(4.0),
        "optimizer": {"state": collections.defaultdict(dict, {0: {"momentum": torch.ones(2)}})},
        "epoch": 3,
    }
    for legacy in (False, True):
        path = tmp_path / f"{legacy}.pth"
        torch.save({"state_dict": WEIGHTS, **extras}, path, _use_new_zipfile_serialization=not legacy)
        content = load_checkpoint(PLAIN, path)
        assert torch.equal(content["optimizer"]["state"][0]["momentum"], torch.ones(2))
        assert same(weights_of(content, path, which="model"), WEIGHTS)


def test_numpy_1_names_are_allowed_too(tmp_path):
    buffer = io.BytesIO()
    torch.save({"state_dict": WEIGHTS, "best": np.float64(1)}, buffer, _use_new_zipfile_serialization=False)
    path = tmp_path / "old.pth"
    # The name of the module is not counted in the pickle: it ends at the line.
    path.write_bytes(buffer.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert same(weights_of(load_checkpoint(PLAIN, path), path, which="model"), WEIGHTS)


def test_full_unpickling_needs_trust_and_a_pinned_digest(tmp_path):
    path = tmp_path / "module.pth"
    network = nn.Sequential(nn.Linear(3, 2))
    torch.save({"model": network}, path)
    refused(path, r"imports .*trust_pickle")
    with pytest.raises(InputError, match="its sha256 must be pinned"):
        load_checkpoint({"trust_pickle": True, "sha256": None}, path)
    with pytest.raises(InputError, match=r"module\.pth: sha256 is .* not a pinned one, so it is not unpickled"):
        load_checkpoint({"trust_pickle": True, "sha256": "0" * 64}, path)
    pinned = {"trust_pickle": True, "sha256": sha256_of_file(path).upper()}
    content = load_checkpoint(pinned, path)
    assert same(weights_of(content, path, which="model"), network.state_dict())


def test_a_trusted_file_that_needs_a_missing_package_says_so(tmp_path):
    path = tmp_path / "needs.pth"
    path.write_bytes(b"\x80\x02cno_such_package\nThing\n)\x81.")
    with pytest.raises(InputError, match=r"needs\.pth: cannot be unpickled even when trusted .*no_such_package"):
        load_checkpoint({"trust_pickle": True, "sha256": [sha256_of_file(path)]}, path)


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("key", WRAPPERS)
def test_wrappers_are_unwrapped(key):
    for content in ({key: WEIGHTS, "epoch": 1}, {key: [WEIGHTS]}, {"model": {key: WEIGHTS, "step": 2}}):
        assert same(weights_of(content, "w.pt", which="model"), WEIGHTS)


@pytest.mark.parametrize("key", AVERAGED)
def test_averaged_weights_are_chosen_by_name_only(key):
    average = {name: value + 1 for name, value in WEIGHTS.items()}
    content = {"model": WEIGHTS, key: average}
    assert same(weights_of(content, "w.pt", which="model"), WEIGHTS)
    assert same(weights_of(content, "w.pt", which="ema"), average)
    with pytest.raises(
        InputError, match=r"w\.pt: no averaged weights under .* it has the keys model; set weights: model"
    ):
        weights_of({"model": WEIGHTS}, "w.pt", which="ema")


def test_weights_of_two_networks_are_not_chosen_between():
    content = {"model": WEIGHTS, "net": {name: value + 1 for name, value in WEIGHTS.items()}, "epoch": 3}
    with pytest.raises(
        InputError, match=r"w\.pt: holds weights under model and under net; save only those of one network"
    ):
        weights_of(content, "w.pt", which="model")
    # What is no state dict is no other network.
    for options in ({"depth": 3}, [0.1, 0.9], ["resnet18"]):
        assert same(weights_of({"model": WEIGHTS, "net": options}, "w.pt", which="model"), WEIGHTS)


def test_content_without_weights_lists_what_there_is():
    for content in ({"epoch": 1, "lr": 2}, [], {}, {"state_dict": [WEIGHTS, WEIGHTS]}, 3):
        with pytest.raises(InputError, match="no state dict found"):
            weights_of(content, "w.pt", which="model")


@pytest.mark.parametrize("prefix", ["", "module.", "model.", "module.model.", "_orig_mod.module.", "backbone."])
def test_prefixes_are_taken_off_where_that_fits(prefix):
    network = nn.Sequential(nn.Linear(3, 2))
    load_weights(network, {prefix + name: value for name, value in WEIGHTS.items()}, "w.pt")
    assert same(network.state_dict(), WEIGHTS)


def test_torchs_own_average_of_weights_fits():
    network, averaged = nn.Sequential(nn.Linear(3, 2)), AveragedModel(nn.Sequential(nn.Linear(3, 2)))
    load_weights(network, averaged.state_dict(), "w.pt")
    assert same(network.state_dict(), averaged.module.state_dict())


def test_a_prefix_that_the_architecture_has_too_stays():
    network = nn.ModuleDict({"model": nn.ModuleDict({"0": nn.Linear(3, 2)})})
    weights = {f"model.{name}": value for name, value in WEIGHTS.items()}
    load_weights(network, weights, "w.pt")
    assert same(network.state_dict(), weights)


def test_mismatches_name_the_first_keys_and_the_remedy():
    with pytest.raises(
        InputError,
        match=r"w\.pt: the weights do not fit the architecture: missing 1\.weight, 1\.bias, 2\.weight and 1 more; "
        r"unexpected nothing; name the architecture that they were trained with",
    ):
        load_weights(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2), nn.Linear(2, 2)), WEIGHTS, "w.pt")
    with pytest.raises(InputError, match=r"unexpected head\.weight"):
        load_weights(nn.Sequential(nn.Linear(3, 2)), {**WEIGHTS, "head.weight": torch.ones(1)}, "w.pt")
    with pytest.raises(InputError, match=r"other shapes .* 0\.weight \(2, 3\) instead of \(5, 3\).*number of classes"):
        load_weights(nn.Sequential(nn.Linear(3, 5)), WEIGHTS, "w.pt")


def test_weights_of_a_network_beside_others_name_the_network():
    lightning = {f"net.{name}": value for name, value in WEIGHTS.items()}
    with pytest.raises(
        InputError, match=r"those of net alone fit: .*torch\.save\(model\.net\.state_dict\(\), \.\.\.\)"
    ):
        load_weights(nn.Sequential(nn.Linear(3, 2)), {**lightning, "loss.weight": torch.ones(2)}, "w.ckpt")


def test_batch_counters_may_be_absent_and_half_precision_is_widened():
    network = nn.Sequential(nn.BatchNorm1d(2))
    stored = {name: value.half() for name, value in network.state_dict().items() if "num_batches" not in name}
    load_weights(network, stored, "w.pt")
    assert network[0].weight.dtype == torch.float32


@pytest.mark.parametrize("number_type", [torch.int8, torch.uint8, torch.bool])
def test_whole_numbers_under_the_names_of_real_ones_are_refused(number_type, tmp_path):
    network = nn.Linear(3, 2)
    weights = {"weight": (100 * network.weight.detach()).to(number_type), "bias": network.bias.detach()}
    name = str(number_type).removeprefix("torch.")
    with pytest.raises(InputError, match=rf"w\.pt: 8-bit whole numbers .*: weight {name}; .*save them in float32"):
        load_weights(network, weights, tmp_path / "w.pt")
    load_weights(network, {name: value.half() for name, value in network.state_dict().items()}, tmp_path / "w.pt")


def quantized(tensor):
    return torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8)


@pytest.mark.parametrize(
    "change",
    [
        torch.Tensor.to_sparse,
        torch.Tensor.to_sparse_csr,
        lambda tensor: tensor.to("meta"),
        quantized,
        lambda tensor: torch.nested.nested_tensor([*tensor]),
    ],
    ids=["sparse", "sparse rows", "meta", "quantized", "nested"],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_other_kinds_are_refused(change, tmp_path):
    torch.save({**WEIGHTS, "0.weight": change(WEIGHTS["0.weight"])}, tmp_path / "w.pt")
    # Some are refused when they are read, the others when they are to be used.
    message = r"w\.pt: (the weights cannot be loaded .*; save them again as dense tensors|nothing in it was run|8-bit whole numbers)"
    with pytest.raises(InputError, match=message):
        content = load_checkpoint(PLAIN, tmp_path / "w.pt")
        load_weights(nn.Sequential(nn.Linear(3, 2)), weights_of(content, "w.pt", which="model"), "w.pt")


def test_masks_and_whole_numbers_fit_where_they_belong():
    network = nn.Sequential(nn.Linear(3, 2))
    network.register_buffer("mask", torch.zeros(2, dtype=torch.bool))
    weights = {**WEIGHTS, "0.bias": torch.tensor([1, 2]), "mask": torch.tensor([True, False])}
    load_weights(network, weights, "w.pt")
    assert network[0].bias.tolist() == [1, 2]
    assert network.mask.tolist() == [True, False]


def test_keys_that_are_numbers_are_listed():
    with pytest.raises(InputError, match=r"missing 0\.weight, 0\.bias; unexpected 1, 2"):
        load_weights(nn.Sequential(nn.Linear(3, 2)), {1: WEIGHTS["0.weight"], 2: WEIGHTS["0.bias"]}, "w.pt")


def test_a_network_that_cannot_be_loaded_is_named():
    class Odd(nn.Linear):
        def _load_from_state_dict(self, *_):
            raise NotImplementedError("quantised layers only")

    weights = {"weight": WEIGHTS["0.weight"], "bias": WEIGHTS["0.bias"]}
    with pytest.raises(InputError, match=r"cannot be loaded into the architecture \(NotImplementedError: quantised"):
        load_weights(Odd(3, 2), weights, "w.pt")
