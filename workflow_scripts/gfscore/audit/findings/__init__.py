"""What an audit shows, as data that are ranked, and the one place where words are made of them.

`making` reads the tables of an audit and its verdict; titles of charts, page, verdict.json, model cards and terminal
hold what `words` makes of findings. Imports nothing, because declarations of charts do.
"""
