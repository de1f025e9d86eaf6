import copy

import pytest

from gfscore import InputError
from gfscore.audit.audit_changes import require_comparable, require_comparable_audits
from gfscore.core.files import write_json

RESULT = {"measure": "great-sigmoid", "models_digest": "a" * 64, "split": None, "t_star": 2.7, "t_star_by_model": None}


def calibration(**changes):
    return {"cross_model_accuracy": RESULT | changes, "likelihood": RESULT | {"t_star": None}}


def test_the_same_models_and_temperatures_compare():
    require_comparable(calibration(), copy.deepcopy(calibration()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"models_digest": "b" * 64}, "the digest of the model set is 'aaa.*in the first audit, but 'bbb"),
        ({"t_star": 2.8}, r"T\* is 2\.7 in the first audit, but 2\.8"),
        ({"measure": "great-softmax"}, "the measure"),
        ({"split": {"share": 0.5, "seed": 0}}, "the split of the samples"),
        ({"t_star_by_model": {"none/a": 1.0}}, "the T of each model"),
    ],
)
def test_other_models_or_temperatures_are_refused(changes, words):
    with pytest.raises(InputError, match=f"calibrated by cross_model_accuracy are not comparable: {words}"):
        require_comparable(calibration(), calibration(**changes))


def test_the_remedy_is_named():
    with pytest.raises(InputError, match=r"compare the rows whose calibration is none \(T = 1\)"):
        require_comparable(calibration(), calibration(t_star=1.0))


def test_audits_without_a_common_objective_are_refused():
    with pytest.raises(InputError, match="share no calibration objective"):
        require_comparable({"likelihood": RESULT}, {"cross_model_accuracy": RESULT})


def test_folders_of_audits_are_named_in_the_error(tmp_path):
    for name, digest in (("one", "a" * 64), ("two", "b" * 64)):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "calibration.json", calibration(models_digest=digest))
    require_comparable_audits(tmp_path / "one", tmp_path / "one")
    with pytest.raises(InputError, match=r"in .*one, but .* in .*two"):
        require_comparable_audits(tmp_path / "one", tmp_path / "two")
