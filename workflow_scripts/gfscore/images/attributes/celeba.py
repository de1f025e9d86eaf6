"""The 40 binary attributes of CelebA, as its authors distribute them."""

from gfscore.images.celeba_files import read_attribute_list

SETTINGS = {
    "path": {"description": "The file list_attr_celeba.txt.", "type": "string", "minLength": 1},
    "columns": {
        "description": "Attributes to keep; null for all 40.",
        "oneOf": [{"type": "null"}, {"$ref": "#/$defs/attribute_columns"}],
    },
}


def open_source(settings, _dataset):
    """Attributes yes or no by image, such as 000001.jpg; `columns` null takes all 40 (Liu et al. 2015)."""
    return read_attribute_list(settings["path"]).replace({1: "yes", -1: "no"})
