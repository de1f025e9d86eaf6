import pytest

from gfscore import InputError
from gfscore.audit.verdicts.verdict import digests_of, read_verdict
from gfscore.core.files import read_json, write_json
from helpers.synthetic_audits import synthetic_audit


@pytest.fixture
def verdict():
    return synthetic_audit(models=2, classes=3, per_class=20, permutations=19, measures=("clean",)).verdict


def test_a_verdict_stands_while_its_files_do(tmp_path, verdict):
    files = [tmp_path / name for name in ("scores", "samples")]
    for file in files:
        file.write_text("as judged")
    verdict = verdict.model_copy(update={"made_from": digests_of(files)})
    verdict.require_current("verdict.json")
    files[1].write_text("as judgeD")
    with pytest.raises(InputError, match="samples"):
        verdict.require_current("verdict.json")
    files[1].unlink()
    with pytest.raises(InputError, match="samples"):
        verdict.require_current("verdict.json")


def test_what_is_written_is_read_back(tmp_path, verdict):
    path = tmp_path / "verdict.json"
    verdict.write(path)
    assert read_verdict(path) == verdict
    (rule,) = read_json(path)["rules"]
    # The threshold stands under its direction too, as config.yaml writes it.
    assert rule[rule["direction"]] == rule["threshold"]
    assert list(rule)[4:7] == ["direction", "threshold", rule["direction"]]


def test_a_verdict_without_what_it_rests_on_is_of_another_version(tmp_path, verdict):
    entries = verdict.as_json()
    del entries["made_from"]
    write_json(tmp_path / "verdict.json", entries)
    with pytest.raises(InputError, match=r"verdict\.json: .*version"):
        read_verdict(tmp_path / "verdict.json")
