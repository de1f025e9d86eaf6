"""Where labelled images come from: one module per source, found by its file.

A source is one module in this folder: a declaration, `SOURCE`, that says which settings an entry of the configuration
has (see gfscore.images.dataset_source), and a function `open_source(settings, path)` that returns an ImageSet and
imports what it needs when it is called (see docs/add-a-dataset.md).
"""
