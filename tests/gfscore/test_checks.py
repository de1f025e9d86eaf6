import pytest

from gfscore.checks import require_published_accuracy
from gfscore.errors import InputError


def test_an_accuracy_within_the_tolerance_or_unpublished_passes():
    require_published_accuracy(0.912, 0.91, tolerance=0.005, source="x")
    require_published_accuracy(0.1, None, tolerance=0.0, source="x")


def test_another_accuracy_than_the_published_one_is_refused_with_both_numbers():
    with pytest.raises(
        InputError, match=r"x: measured clean accuracy 85\.00%, published 91\.00% \(tolerance 0\.50 points\)"
    ):
        require_published_accuracy(0.85, 0.91, tolerance=0.005, source="x")
