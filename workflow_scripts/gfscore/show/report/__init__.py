"""The report of an audit: one page, its rows and its sentences."""
