"""What tests of the configuration change."""

import pytest

from helpers.configurations import shipped_configuration


@pytest.fixture
def config():
    """Every shipped audit, complete; the demo is to run."""
    return shipped_configuration()
