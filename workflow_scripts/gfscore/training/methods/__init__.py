"""Training methods.

A method is one module in this folder with a declaration `METHOD` (see gfscore.networks.training_settings): its settings
and the function that makes its objective (see gfscore.training.objectives). The module imports nothing heavy; what it
needs of torch it takes from gfscore.training.lazy.
"""
