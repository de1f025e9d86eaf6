"""Images of a dataset together with the conditions that a mapper takes of them."""

from gfscore.datasets import load_all, open_described
from gfscore.mappers.conditions import condition_names, conditions_of
from gfscore.tables import read_attributes


def chosen_categories(path_to_attributes, attributes):
    """Categories of the attributes that condition a mapper, in order; all that the table has where None is given.

    Raises InputError for an attribute that the table does not have.
    """
    from gfscore.errors import InputError, unknown

    _, categories = read_attributes(path_to_attributes)
    for name in attributes or ():
        if name not in categories:
            raise InputError(f"{path_to_attributes}: {unknown('attribute', name, categories)}")
    return {name: categories[name] for name in attributes or categories}


def conditioned_images(path_to_manifest, path_to_attributes, categories):
    """Images (N, C, H, W), conditions (N, A) or None, and the manifest of a dataset.

    `path_to_attributes` and `categories` are None for a mapper without conditions.
    """
    images, described = open_described(path_to_manifest)
    shown, _ = load_all(images)
    if not path_to_attributes:
        return shown, None, described
    frame, _ = read_attributes(path_to_attributes, expect={"dataset": described["dataset"]})
    return shown, conditions_of(frame, categories), described


def conditions_by_sample(path_to_attributes, categories):
    """Function from sample identifiers (n,) to the keyword argument `conditions` (n, A); {} without attributes."""
    if not path_to_attributes:
        return lambda sample_id: {}
    frame, _ = read_attributes(path_to_attributes)
    place = {name: row for row, name in enumerate(frame["sample_id"])}
    conditions = conditions_of(frame, categories)
    return lambda sample_id: {"conditions": conditions[[place[name] for name in sample_id]]}


def names_of(categories):
    """Names of the conditions, or None for a mapper without any."""
    return None if categories is None else condition_names(categories)
