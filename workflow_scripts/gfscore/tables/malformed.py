"""Tables of users that can be read, but not as what they are meant to be."""

import re
from pathlib import Path

from gfscore.core.errors import InputError

ROW_NAMES = re.compile(r"(Unnamed: \d+|__index_level_\d+__)?$")
"""Names that pandas and Parquet give to a column of row names, which has none of its own."""

WITHOUT_ROW_NAMES = "write the file without row names (R: row.names = FALSE, pandas: index=False)"
"""Remedy for a table with such a column."""


AS_UTF_8 = "save it as UTF-8"
"""Remedy for text in another encoding, such as Latin-1 or the UTF-16 of some spreadsheets."""


class Malformed(ValueError):
    """A fault of a file whose `remedy` is known: its bytes are whole, and writing them again would change nothing."""

    def __init__(self, fault: str, remedy: str) -> None:
        """Keep the remedy beside the fault, which is the text of the error."""
        super().__init__(fault)
        self.remedy = remedy


def unreadable(path: Path | str, kind: str, error: Exception) -> InputError:
    """InputError for a file of a kind (".csv") that a reader refused, with the remedy of its error or a general one."""
    return InputError(f"{path}: not readable as {kind} ({error}); {getattr(error, 'remedy', 'write the file again')}")
