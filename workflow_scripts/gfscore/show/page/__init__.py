"""The page of an audit, report.html: verdict, picture and findings, then a section for each question."""

from pydantic import Field

from gfscore.core.settings import Closed


class ReportSettings(Closed):
    """The report page."""

    contact: str | None = Field(None, description="Who answers questions about the audits; null for nobody.")
