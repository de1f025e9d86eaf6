"""Snakemake's plugin for --logger gfscore: see gfscore.workflow.running. Its name is how Snakemake finds it."""

from __future__ import annotations

import logging

from snakemake_interface_logger_plugins.base import LogHandlerBase

from gfscore.workflow.running import Display


class LogHandler(LogHandlerBase):
    """What Snakemake logs, as a display of how far a run is."""

    writes_to_stream, writes_to_file = True, False
    has_filter = has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Open the display; a dry run lists its steps."""
        self._display = Display(dry=bool(getattr(self.common_settings, "dryrun", False)))

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record."""
        try:
            self._display.take(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Take the display down."""
        self._display.close()
        super().close()
