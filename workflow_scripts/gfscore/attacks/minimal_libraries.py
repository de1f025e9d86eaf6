"""Minimal-norm attacks of public libraries, in the form of gfscore.attacks.minimal_norm.

Why others are not offered: of foolbox 3.3.4, L2FMNAttack never projects onto its ball (it finds distance 1 for every
image), DDNAttack is up to 40% too far on linear models after 200 steps, the Brendel-Bethge attack needs numba, and
DeepFool classifies once per class and step and keeps finished images in the batch; the targeted FAB of pyautoattack
0.2.0 stops at the first class that works.
"""

from gfscore.attacks.library_networks import as_library_expects
from gfscore.attacks.minimal_norm import require_norm


def carlini_wagner(
    network, images, labels, *, norm, largest_distance, steps=100, binary_search_steps=9, step_size=0.01
):
    """Carlini and Wagner's l2 attack, by foolbox: Adam on squared distance plus c times the margin, c searched.

    Takes up to `steps` times `binary_search_steps` passes. Source: Carlini and Wagner 2017, sections V and VI.
    """
    import foolbox

    require_norm(norm, ("l2",), attack="carlini-wagner")
    attack = foolbox.attacks.L2CarliniWagnerAttack(
        steps=steps, binary_search_steps=binary_search_steps, stepsize=step_size
    )
    with as_library_expects(network, seed=0) as counted:
        model = foolbox.PyTorchModel(counted, bounds=(0, 1), device=images.device)
        return attack.run(model, images, foolbox.Misclassification(labels)), _passes(counted, images)


def fab(network, images, labels, *, norm, largest_distance, steps=100):
    """Fast adaptive boundary attack, untargeted, by pyautoattack: one gradient per class and step.

    Source: Croce and Hein 2020, Algorithm 1.
    """
    from pyautoattack.fab_pt import FABAttack_PT

    require_norm(norm, ("linf", "l2"), attack="fab")
    name = {"linf": "Linf", "l2": "L2"}[norm]
    with as_library_expects(network, seed=0) as counted:
        attack = FABAttack_PT(counted, norm=name, eps=largest_distance, n_iter=steps, device=images.device)
        return attack.perturb(images, labels), _passes(counted, images)


def _passes(counted, batch):
    import torch

    each = -(-counted.images // len(batch))
    return torch.full((len(batch),), each, dtype=torch.int64, device=batch.device)
