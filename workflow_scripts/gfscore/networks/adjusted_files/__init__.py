"""Files of networks with offsets of their classes: each in the format that it came in.

`write_adjusted` of the module `writing` is the door. A model source names under `adjusted_by` its module in this
folder, which has `write_adjusted(settings, path, offsets, target, *, image_shape, classes)`: `settings` are the model's
entry, `path` its file, `offsets` the numbers (K,) that are added to the logits of the data's classes, `target` the main
file to write, in a folder that is otherwise empty; it returns an `AdjustedFiles`.
"""
