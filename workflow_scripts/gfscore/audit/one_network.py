"""Whether one network gave all measures of a model: its predictions for the undisturbed samples must agree."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from gfscore.audit.measured import Measured
from gfscore.audit.model_samples import ModelSamples
from gfscore.core.errors import InputError
from gfscore.core.identity import MODEL, label_of
from gfscore.measures import from_logits, reference_measure

MOST_CHANGED = 0.02
"""Share of the predictions that may differ between two measures of one network.

Other batch sizes, devices and tf32 flip only samples whose two largest logits are nearly equal, hardly any. Two
networks differ in more: of the CIFAR-10 checkpoints of the tests the two most alike, ResNets of 44 and 56 layers, in
5.6%.
"""

MOST_CHANGED_IN_BFLOAT16 = 0.06
"""The same where one of the two was computed in bfloat16, which keeps 8 bits.

It changes up to 3.0% of the predictions of those checkpoints, most if adversarially trained: their logits are close.
"""

FEW_CHANGED = 2
"""This many may differ, whatever share of all they are, since any sample may be a near-tie."""


def require_one_network(measured: Mapping[str, Measured], own: ModelSamples) -> None:
    """Refuse measures of one model that were computed with different networks.

    Takes Measured values of one model by measure, and its ModelSamples, which name their files. Compares
    `predicted`, what the network itself predicts for the undisturbed samples, with the measure from logits, or where
    there is none with the first one, on the samples that both have. Where it is not known (values that were computed
    elsewhere, which may be of the smoothed classifier) nothing is compared. Raises InputError where more than
    FEW_CHANGED and more than the share MOST_CHANGED of them differ, MOST_CHANGED_IN_BFLOAT16 for numbers in bfloat16.
    """
    known = {name: _predictions(item) for name, item in measured.items()}
    known = {name: predictions for name, predictions in known.items() if len(predictions)}
    if not known:
        return
    reference = reference_measure(own.measures)
    first = reference if reference in known else next(iter(known))
    for name, predictions in known.items():
        of_first, of_other = known[first].align(predictions, join="inner")
        changed = int(np.count_nonzero(of_first != of_other))
        in_bfloat16 = any(own.identity(measure).get("dtype") == "bfloat16" for measure in (first, name))
        tolerated = MOST_CHANGED_IN_BFLOAT16 if in_bfloat16 else MOST_CHANGED
        if changed > FEW_CHANGED and changed > tolerated * len(of_other):
            remade = " ".join(_to_remake(part, own) for part in (first, name))
            raise InputError(
                f"{label_of(own.model)}: {first} and {name} are not of one network: for {changed} of "
                f"{len(of_other)} undisturbed samples the predictions in {own.path(first)} and {own.path(name)} "
                "differ, more than rounding explains. Its weights, or code that it uses, changed after one of them was "
                f"made; make both again by adding -R {remade} to the command"
            )


def _to_remake(measure, own):
    # What the network itself computed.
    if from_logits(own.measures[measure]):
        return f"results/logits/{MODEL.format(**own.model)}.parquet"
    return str(own.path(measure))


def _predictions(item):
    # Series of the known predictions by sample_id.
    if item.predicted is None:
        return pd.Series(dtype=float)
    return pd.Series(item.predicted, index=item.sample_id).dropna()
