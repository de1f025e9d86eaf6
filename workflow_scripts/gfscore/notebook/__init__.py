"""Audits in a notebook or a script: arrays go in; data frames, a verdict and charts come out, and no file is written.

`audits` holds what `gfscore` exports, `attacks_in_memory` the attack on a torch module, `inputs` what is accepted,
`plots` the charts on matplotlib's axes.
"""
