"""The source papers' claims, and three questions of our own, on real networks whose files others published.

`audits` describes the audits, `evidence` reads what they measured, `statistics` makes numbers with intervals of it, and
`studies/audit_real_networks.py` runs everything and writes studies/reference/real_networks.json.
"""
