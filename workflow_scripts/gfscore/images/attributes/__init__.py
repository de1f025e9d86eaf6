"""Sources of attributes of samples, such as age or slant, which define the groups of group fairness.

A source is one module in this folder: a declaration `SOURCE` with the settings of an entry `attributes` (see
gfscore.images.attribute_source), and a function `open_source(settings, dataset)` that returns a data frame of raw
columns by sample identifier (its index) and imports what it needs when it is called. `settings` is an instance of the
declared model, `dataset` a gfscore.images.attribute_values.Dataset.
"""
