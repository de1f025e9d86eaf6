"""Pieces of Markdown that the studies' pages share."""


def table(header, rows):
    """Table of texts."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
