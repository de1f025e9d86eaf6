"""The table of what was measured, as the README beside this file shows it."""

from itertools import groupby

BEGIN, END = "<!-- measured: written by run.py -->\n", "<!-- end of measured -->\n"

MANY = 8
"""More rows than this of one kind are told by the least and the largest of them."""


def table(rows):
    """Markdown table of rows (benchmark, name, ratio, target, unit), in their order."""
    lines = ["| benchmark | what | measured | wanted |", "| --- | --- | --- | --- |"]
    kinds = sorted(rows, key=lambda row: (_place(row, rows), str(row["unit"]), str(row["target"])))
    for _, group in groupby(kinds, key=lambda row: (row["benchmark"], row["unit"], row["target"])):
        same = list(group)
        lines += [_merged(same)] if len(same) > MANY else map(_line, same)
    return "\n".join(lines) + "\n"


def put_into(readme, rows):
    """Text of a README with the table of `rows` between its two marks; ValueError where a mark is missing."""
    before, _, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the README has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"


def missed(row):
    """Whether a row has a target and stays below it."""
    return row["target"] is not None and row["ratio"] < row["target"]


def _place(row, rows):
    return next(index for index, other in enumerate(rows) if other["benchmark"] == row["benchmark"])


def _line(row):
    value = f"{row['ratio']:,.3g}" if row["ratio"] < 1000 else f"{row['ratio']:,.0f}"
    measured = f"{value} {row['unit']}"
    return _cells(row, row["name"], f"**{measured}, missed**" if missed(row) else measured)


def _merged(rows):
    least, most = min(rows, key=_ratio), max(rows, key=_ratio)
    names = f"{len(rows)} comparisons, the least: {least['name']}"
    ends = dict.fromkeys(f"{row['ratio']:.3g}" for row in (least, most))
    measured, short = f"{' to '.join(ends)} {least['unit']}", sum(map(missed, rows))
    return _cells(least, names, f"**{measured}, missed by {short}**" if short else measured)


def _ratio(row):
    return row["ratio"]


def _cells(row, name, value):
    wanted = "" if row["target"] is None else f"{row['target']:,.3g}" if row["target"] < 1000 else f"{row['target']:,}"
    return f"| `{row['benchmark']}` | {name} | {value} | {wanted} |"
