"""What a job keeps for the next attempt: a damaged part is made again, and never taken for a whole one.

Here "made again" is an error that names the file, as if it were refused.
"""

import numpy as np

from gfscore.core.errors import InputError
from gfscore.workflow.catalogue import CATALOGUE


def kept_part(folder):
    from gfscore.measures.progress import compute_in_parts

    compute_in_parts(["a"], lambda _: samples(), **of_part(folder))
    (path,) = (folder / "parts").rglob("*.parquet")
    return path


def of_part(folder):
    return {"table": CATALOGUE["samples"], "folder": folder / "parts", "identity": {"model": "A"}}


def samples():
    import pandas as pd

    from faults.user_files import LABELS, SAMPLES

    names = [f"s{i}" for i in range(SAMPLES)]
    values = {"value": np.linspace(0, 1, SAMPLES), "censored": False}
    return pd.DataFrame({"sample_id": names, "label": LABELS, "prediction": LABELS, **values})


def read_kept_part(path):
    from gfscore.measures.progress import compute_in_parts

    def made_again(_):
        raise InputError(f"{path}: made again")

    frame = compute_in_parts(["a"], made_again, **of_part(path.parents[2]))
    return [frame[name].to_numpy() for name in frame]


def state():
    """Network, optimiser, memory and generator, as gfscore.training keeps them."""
    import torch

    network = torch.nn.Linear(4, 3)
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(1, 4)).sum().backward()
    optimiser.step()
    return {
        "objects": {"network": network, "optimiser": optimiser},
        "memory": {"losses": torch.arange(2.0)},
        "generator": torch.Generator().manual_seed(1),
    }


def kept_training(folder):
    import torch

    from gfscore.networks.trained import TrainingProgress

    torch.manual_seed(0)
    TrainingProgress(folder / "epoch.pt", "made", every_s=0).save(7, **state())
    return folder / "epoch.pt"


def read_kept_training(path):
    from gfscore.networks.trained import TrainingProgress

    into = state()
    epochs = TrainingProgress(path, "made").restore(**into)
    if epochs == 0:
        raise InputError(f"{path}: trained again")
    moments = into["objects"]["optimiser"].state_dict()["state"][0]
    kept = [*into["objects"]["network"].parameters(), *moments.values(), into["memory"]["losses"]]
    return [np.array(epochs), *(tensor.detach().numpy() for tensor in kept), into["generator"].get_state().numpy()]


def recorded_digest(folder):
    """The digest that is recorded when a checkpoint is first seen, beside it."""
    from faults.model_files import safetensors
    from gfscore.networks.checkpoint_files import prepare_checkpoint

    path = safetensors(folder)
    prepare_checkpoint(path)
    return path.with_name(f"{path.name}.sha256")


def read_recorded_digest(path):
    from gfscore.networks.checkpoint_files import prepare_checkpoint

    return [np.array(prepare_checkpoint(path.with_suffix("")))]
