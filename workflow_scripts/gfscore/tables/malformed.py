"""Errors of users' tables whose remedy is known."""

import re
from pathlib import Path

from gfscore.core.errors import InputError

ROW_NAMES = re.compile(r"(Unnamed: \d+|__index_level_\d+__)?$")
"""Names that pandas and Parquet give to an unnamed column of row names."""

WITHOUT_ROW_NAMES = "write the file without row names (R: row.names = FALSE, pandas: index=False)"
"""Remedy for a table with such a column."""

AS_UTF_8 = "save it as UTF-8"
"""Remedy for text in another encoding, such as Latin-1 or the UTF-16 of some spreadsheets."""


class MalformedError(ValueError):
    """A fault of an undamaged file: it needs its own `remedy`, since copying it again changes nothing."""

    def __init__(self, fault: str, remedy: str) -> None:
        """`fault` is the text of the error."""
        super().__init__(fault)
        self.remedy = remedy


def unreadable(path: Path | str, kind: str, error: Exception) -> InputError:
    """InputError for a file of format `kind` (".csv") that a reader rejected, with the error's remedy if it has one."""
    return InputError(f"{path}: not readable as {kind} ({error}); {getattr(error, 'remedy', 'write the file again')}")
