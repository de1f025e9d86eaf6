"""Sources of models.

A source is one module in this folder with a declaration `SOURCE` (see gfscore.networks.model_source), which imports
nothing heavy, because the Snakefile imports it. Its `opened_by` names a module with a function
`open_classifier(settings, path, *, image_shape, classes, threads)` that returns a Classifier: `settings` are the
model's entry, `path` its checkpoint, whose digest was verified before; `image_shape` (C, H, W) and `classes` K are
those of the data, `threads` the number for libraries other than torch. Where that module has `READS_DIGESTS = True`,
its open_classifier also takes `digests`, SHA-256 by path, and verifies them as it reads.

`fitted_by` names a function of models that the workflow fits, `fit(train, test, *, classes, settings, attack, backbone,
device, progress)`: `train` and `test` are image sets of `classes` classes; `settings` are those of the training and
`attack` those that measure robust accuracy, `progress` the TrainingProgress, of a model whose weights are all trained;
`backbone` is the manifest of the backbone of a probe, `device` where its features are computed. It returns the network
to save, and two mappings for JSON: what the file of weights states besides identity and training data, and what the
manifest states.

The same module, or the one that `files_by` names, may have functions that fetch_checkpoint calls (see
gfscore.networks.checkpoint_files): `files_of(settings)`, if the files are not in the entry; `external_files(path)`,
files that the main file refers to; and `require_usable(path)`, which refuses a file before it is used. The module that
`adjusted_by` names writes models of the source with offsets of their classes (gfscore.networks.adjusted_files).
"""
