"""Gates on what was measured: does the classifier do what its publication says?"""

from gfscore.errors import InputError


def require_published_accuracy(accuracy, published, *, tolerance, source):
    """Raise InputError when the measured clean accuracy differs from the published one by more than the tolerance.

    All fractions 0..1; `published` None means that there is nothing to compare with. `source` is named in the error.
    """
    if published is not None and abs(accuracy - published) > tolerance:
        raise InputError(
            f"{source}: measured clean accuracy {100 * accuracy:.2f}%, published {100 * published:.2f}% "
            f"(tolerance {100 * tolerance:.2f} points). Usual causes: wrong preprocessing, another data split, "
            "a checkpoint of another model; correct the model's entry in config.yaml"
        )
