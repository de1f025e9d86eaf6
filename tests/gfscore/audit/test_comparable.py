import pytest

from gfscore import InputError
from gfscore.audit.audit_changes import require_comparable_audits
from gfscore.core.files import write_json

RESULT = {"measure": "great-sigmoid", "models_digest": "a" * 64, "split": None, "t_star": 2.7, "t_star_by_model": None}


@pytest.fixture
def compare(tmp_path):
    """Function that compares audits whose calibration.json have these contents."""

    def compare(first, second):
        for name, content in (("one", first), ("two", second)):
            (tmp_path / name).mkdir()
            write_json(tmp_path / name / "calibration.json", content)
        require_comparable_audits(tmp_path / "one", tmp_path / "two")

    return compare


def calibration(**changes):
    return {"cross_model_accuracy": RESULT | changes, "likelihood": RESULT | {"t_star": None}}


def test_the_same_models_and_temperatures_compare(compare):
    compare(calibration(), calibration())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"models_digest": "b" * 64}, "the digest of the model set is 'aaa.* in .*one, but 'bbb.* in .*two"),
        ({"t_star": 2.8}, r"T\* is 2\.7 in .*one, but 2\.8 in .*two; compare the rows whose calibration is none"),
        ({"measure": "great-softmax"}, "the measure"),
        ({"split": {"share": 0.5, "seed": 0}}, "the split of the samples"),
        ({"t_star_by_model": {"none/a": 1.0}}, "the T of each model"),
    ],
)
def test_other_models_or_temperatures_are_refused(compare, changes, words):
    with pytest.raises(InputError, match=f"calibrated by cross_model_accuracy are not comparable: {words}"):
        compare(calibration(), calibration(**changes))


def test_audits_without_a_common_objective_are_refused(compare):
    with pytest.raises(InputError, match="share no calibration objective"):
        compare({"likelihood": RESULT}, {"cross_model_accuracy": RESULT})
