"""Where classifiers come from: one module per source, found by its file.

A module has a function `open_classifier(settings, path, *, image_shape, classes, threads)` that returns a Classifier:
`settings` are the model's entry in config.yaml, `path` its checkpoint, whose digest was verified before; `image_shape`
(C, H, W) and `classes` K are those of the data to be classified, `threads` how many the arithmetic may use where torch
does not do it. A source whose own tables know where its files lie also has `files_of(settings)`, and one that can tell
beforehand that it will not open a file has `require_usable(path)` (see gfscore.networks.manifests).
"""

from pkgutil import iter_modules

SOURCES = {module.name: f"{__name__}.{module.name}" for module in iter_modules(__path__)}
"""Source name in config.yaml -> module that opens it."""
