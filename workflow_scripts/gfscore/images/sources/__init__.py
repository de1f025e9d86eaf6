"""Sources of labelled images.

A source is one module in this folder: a declaration `SOURCE` with the settings of a dataset entry (see
gfscore.images.dataset_source), and a function `open_source(settings, path)` that returns an ImageSet and imports what
it needs when it is called (see docs/add-a-dataset.md). `settings` is an instance of the declared model.
"""
