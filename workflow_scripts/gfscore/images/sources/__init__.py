"""Where labelled images come from: one module per source, found by its file.

A module has a function `open_source(settings, path)` that returns an ImageSet, and a mapping SETTINGS, the JSON Schema
of its own keys in config.yaml (see docs/add-a-dataset.md).
"""

from pkgutil import iter_modules

SOURCES = {module.name: f"{__name__}.{module.name}" for module in iter_modules(__path__)}
"""Source name in config.yaml -> module that opens it."""
