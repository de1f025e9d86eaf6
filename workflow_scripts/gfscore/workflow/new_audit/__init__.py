"""An audit of one's own files: what they hold is found, checked and written down as a configuration, which then runs.

`command` is what the user calls; it asks `inspection`, a process of its own, which opens models and images.
"""
