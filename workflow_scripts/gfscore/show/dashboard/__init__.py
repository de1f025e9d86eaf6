"""The dashboard of an audit: one self-contained page that recomputes rankings and verdicts while its reader looks.

`contents` is what the page knows, `charts` what it draws (Vega-Lite specifications made with Altair), `rendering` the
page itself; page/ holds its template, style and scripts. Vega, Vega-Lite and vega-embed stand in the page once.
"""
