"""Findings: what an audit or a chart shows, as data that are ranked, and the one place where words are made of them.

Charts, the page, verdict.json, model cards and the terminal hold what `words` makes of findings. Findings of an audit
are made in `gfscore.audit.verdicts.findings`. Imports nothing heavy, because declarations of charts do.
"""
