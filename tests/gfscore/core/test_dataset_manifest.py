import pytest

from gfscore.core.dataset_manifest import resolve_label_error_rates
from gfscore.core.errors import InputError
from gfscore.core.files import write_json


def test_there_is_one_label_error_rate_for_each_class(tmp_path):
    path = tmp_path / "data.json"
    write_json(path, {"dataset": "data", "digest": "0", "classes": ["a", "b", "c"], "samples": 3})
    assert resolve_label_error_rates(0.1, path, None) == [0.1] * 3
    assert resolve_label_error_rates([0.1, 0.2, 0.3], path, None) == [0.1, 0.2, 0.3]
    with pytest.raises(InputError, match="label_error_rate of data has 2 numbers for 3 classes"):
        resolve_label_error_rates([0.1, 0.2], path, None)
