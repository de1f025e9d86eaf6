"""An audit in the forms that others read: LaTeX, model cards, a description of its data, a research object, MLflow."""

from pydantic import Field

from gfscore.core.settings import Closed, Name

ORCID = r"^https://orcid\.org/\d{4}-\d{4}-\d{4}-\d{3}[\dX]$"
HUB_NAME = r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$"
SPDX_NAME = r"^[A-Za-z0-9.+-]+$"
WEB_ADDRESS = r"^https?://[^\s?#]+$"
CODE_ADDRESS = r"^https?://[^\s?#{}]+\{commit\}[^\s?#{}]*/$"


class Author(Closed):
    """Who ran the audits."""

    name: str = Field(min_length=1, description="Name of the person.")
    orcid: str | None = Field(None, pattern=ORCID, description="ORCID, as https://orcid.org/0000-0000-0000-0000.")


class Publisher(Closed):
    """An organisation."""

    name: str = Field(min_length=1, description="Name of the organisation.")
    url: str = Field(pattern=WEB_ADDRESS, description="Address of its page.")


class DatasetStatement(Closed):
    """A dataset."""

    hub: str | None = Field(None, pattern=HUB_NAME, description="Identifier on the Hugging Face Hub, owner/name.")
    licence: str | None = Field(None, pattern=SPDX_NAME, description="Licence of the data, by its SPDX identifier.")


class ExportSettings(Closed):
    """Facts that only the authors of an audit know; exports state them, except where they are null."""

    author: Author | None = Field(None, description="Who ran the audits.")
    publisher: Publisher | None = Field(None, description="Organisation of the author, which publishes the audits.")
    licence: str | None = Field(
        None,
        pattern=SPDX_NAME,
        description="Licence of the results, by its SPDX identifier such as CC-BY-4.0.",
    )
    code: str | None = Field(
        None,
        pattern=CODE_ADDRESS,
        description=(
            "Folder on the web that holds the files of this workflow at a commit, with {commit} in its place, such as "
            "https://raw.githubusercontent.com/OWNER/gfscore/{commit}/."
        ),
    )
    datasets: dict[Name, DatasetStatement] = Field({}, description="Where datasets are published, by their names here.")

    def dataset(self, name: str) -> DatasetStatement:
        """What is stated of a dataset."""
        return self.datasets.get(name, DatasetStatement())
