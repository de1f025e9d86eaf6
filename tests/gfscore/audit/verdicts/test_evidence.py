import pytest

from gfscore import InputError
from gfscore.audit.verdicts.verdict import digests_of, require_current


def test_a_verdict_stands_while_its_files_do(tmp_path):
    files = [tmp_path / name for name in ("scores", "samples")]
    for file in files:
        file.write_text("as judged")
    verdict = {"made_from": digests_of(files)}
    require_current(verdict, source="verdict.json")
    files[1].write_text("as judgeD")
    with pytest.raises(InputError, match="samples"):
        require_current(verdict, source="verdict.json")
    files[1].unlink()
    with pytest.raises(InputError, match="samples"):
        require_current(verdict, source="verdict.json")
    with pytest.raises(InputError, match="earlier version"):
        require_current({}, source="verdict.json")
