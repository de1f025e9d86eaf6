"""Sources of labelled images.

A source is one module in this folder: a declaration `SOURCE` with the settings of a dataset entry (see
gfscore.images.dataset_source), and a function `open_source(settings, path)` that returns an ImageSet and imports what
it needs when it is called (see docs/add-a-dataset.md). `settings` is an instance of the declared model.

Of samples that the workflow draws, `drawn_by` names a function `draw(settings, *, dataset, classes, path_to_train)`
that returns images (N, C, H, W) float32 in [0, 1], labels (N,), and a mapping for JSON on what they were drawn from.
`settings` are those of the generator, as params hold them; `dataset` and `classes` are name and classes of the drawn
dataset; `path_to_train` is the manifest of the dataset that the generator is fitted on, None for a generator of others.
"""
