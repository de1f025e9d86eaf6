"""Files that hold a program, whole or damaged: none of it runs, whatever reads them."""

import os
import pickle
import zipfile

import numpy as np
import pytest

from faults import kept_files, mapper_files, model_files, user_files
from faults.damage import damaged
from faults.pool import watched
from gfscore.core.errors import InputError

TRACE = "it-ran"
CASES = 60


class Program:
    """What unpickles to a call that leaves a trace."""

    def __init__(self, call, *arguments):
        self.made = call, arguments

    def __reduce__(self):
        return self.made


def programs(trace):
    return [
        Program(os.system, f"touch {trace}"),
        Program(eval, f"open({trace!r}, 'w').close()"),
        Program(os.mkdir, trace),
        Program(np.save, trace, [1]),
    ]


def npy(folder, program, name="logits.npy"):
    np.save(folder / name, np.array([program] * 3, dtype=object), allow_pickle=True)
    return folder / name


def labels(folder, program):
    return npy(folder, program, "labels.npy")


def npz(folder, program, array="logits"):
    np.savez(folder / "logits.npz", **{array: np.array([program] * 3, dtype=object)})
    return folder / "logits.npz"


def pictures(folder, program):
    return npz(folder, program, "originals")


def images(folder, program):
    np.savez(folder / "images.npz", x=np.array([program] * 3, dtype=object), y=[0, 1, 2])
    return folder / "images.npz"


def corrupted(folder, program):
    user_files.corrupted_images(folder)
    return npy(folder, program, "fog.npy")


def cifar(folder, program):
    (folder / "test_batch").write_bytes(pickle.dumps({"data": program, "labels": [0]}, protocol=2))
    return folder / "test_batch"


def pt(layout):
    def make(folder, program):
        import torch

        content = {"state_dict": model_files.network().state_dict(), "epoch": program}
        torch.save(content, folder / "weights.pt", _use_new_zipfile_serialization=layout == "zip")
        return folder / "weights.pt"

    return make


def bare(folder, program):
    (folder / "weights.pt").write_bytes(pickle.dumps(program, protocol=2))
    return folder / "weights.pt"


def kept_training(folder, program):
    import torch

    # A whole one first, for which torch loads what the reader would load in every process.
    path = kept_files.kept_training(folder)
    torch.save({"identity": program, "epochs": 1, "parts": {}}, path)
    return path


def zipped_twice(folder, program):
    """Two members of one name: the check and the reader must not look at different ones."""
    path = model_files.pt("zip")(folder)
    with zipfile.ZipFile(path, "a") as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        archive.writestr(name, pickle.dumps(program, protocol=2))
    return path


CARRIERS = {
    "npy": (npy, user_files.read_user_logits),
    "labels": (labels, user_files.read_labels),
    "npz": (npz, user_files.read_user_logits),
    "images": (images, user_files.images_of(source="npz", value_range=255, channels="last")),
    "corrupted images": (corrupted, user_files.read_corrupted),
    "CIFAR": (cifar, user_files.read_cifar),
    "PyTorch": (pt("zip"), model_files.read_weights),
    "old PyTorch": (pt("old"), model_files.read_weights),
    "bare pickle": (bare, model_files.read_weights),
    "kept training": (kept_training, kept_files.read_kept_training),
    "pictures of a mapper": (pictures, mapper_files.read_pictures),
    "two pickles in one archive": (zipped_twice, model_files.read_weights),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", CARRIERS)
def test_a_program_in_a_file_does_not_run(name, tmp_path, trials):
    make, read = CARRIERS[name]
    trace = tmp_path / TRACE
    made = []
    for number, program in enumerate(programs(str(trace))):
        folder = tmp_path / str(number)
        folder.mkdir()
        made.append(make(folder, program))

    def attempt(case):
        path, seed = case
        content = path.read_bytes()
        own = path.with_name(f"{os.getpid()}") / path.name
        own.parent.mkdir(exist_ok=True)
        for beside in path.parent.glob("*.npy"):
            (own.parent / beside.name).write_bytes(beside.read_bytes())
        own.write_bytes(damaged(content, np.random.default_rng([seed, len(name)])) if seed else content)
        try:
            read(own)
        except InputError as error:
            assert own.name in str(error) or own.parent.name in str(error)
            return True
        return False

    whole = watched(attempt, [(path, 0) for path in made])
    assert [fault for _, fault, _ in whole if fault] == []
    # Of two pickles the harmless one may be read.
    assert all(refused for _, _, refused in whole) or make is zipped_twice
    outcomes = watched(attempt, [(path, seed) for path in made for seed in range(1, trials(CASES) // len(made))])
    assert [fault for _, fault, _ in outcomes if fault] == []
    assert not list(tmp_path.glob(f"{TRACE}*"))
