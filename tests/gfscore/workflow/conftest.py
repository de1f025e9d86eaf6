"""What tests of the configuration change."""

import pytest

from shipped_configuration import shipped_configuration


@pytest.fixture
def config():
    """config.yaml as it is shipped."""
    return shipped_configuration()
