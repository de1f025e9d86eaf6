"""Sources of models: what each one's entries say, what it can be asked, and which module opens it.

A source is one module in this folder that declares a `SOURCE` (see gfscore.networks.model_source) and imports nothing
heavy: it is read whenever a run is planned. What it names by `opened_by` does the work: a module with a function
`open_classifier(settings, path, *, image_shape, classes, threads)` that returns a Classifier. `settings` are the
model's entry, `path` its checkpoint, whose digest was verified before; `image_shape` (C, H, W) and `classes` K are
those of the data to be classified, `threads` how many the arithmetic may use where torch does not do it. A source whose
own tables know where its files lie also has `files_of(settings)`, and one that can tell beforehand that it will not
open a file has `require_usable(path)` (see gfscore.networks.manifests).
"""
