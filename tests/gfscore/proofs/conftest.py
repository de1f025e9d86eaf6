"""What tests of proofs share."""

import pytest

from gfscore.proofs import graph


@pytest.fixture
def not_compared(monkeypatch):
    """Networks that overflow are refused when they are read; here they are read all the same."""
    monkeypatch.setattr(graph, "_same_function", lambda *_: True)
