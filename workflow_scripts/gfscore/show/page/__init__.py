"""The page of an audit, report.html: verdict, picture and findings on its first screen, then six sections."""

from pydantic import Field

from gfscore.core.settings import Closed


class ReportSettings(Closed):
    """The report page."""

    contact: str | None = Field(None, description="Who answers questions about the audits; null for nobody.")
