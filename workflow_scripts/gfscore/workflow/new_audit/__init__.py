"""An audit of a user's own files: models and data are inspected and written as a configuration, which then runs.

`command` is what the user calls; it runs `inspection` in a process of its own, which opens models and images.
"""
