"""Three findings of our own about real networks: numbers, pictures and the page docs/findings.md.

All from studies/reference/real_networks.csv and .json, which `studies/audit_real_networks.py` makes.
"""
