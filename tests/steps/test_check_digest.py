"""A digest that is pinned after the data were fetched."""

import pytest

from check_digest import check_digest
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json

DIGEST = "ab" * 32


def test_the_pinned_digest_is_that_of_the_manifest_in_either_case_of_letters(tmp_path):
    manifest, check = tmp_path / "d.json", tmp_path / "check.json"
    write_json(manifest, {"dataset": "d", "digest": DIGEST})
    for pinned in (DIGEST, DIGEST.upper()):
        check_digest(manifest, check, pinned=pinned)
        assert read_json(check) == {"dataset": "d", "digest": DIGEST}


def test_another_digest_is_refused_with_what_to_do(tmp_path):
    manifest = tmp_path / "d.json"
    write_json(manifest, {"dataset": "d", "digest": DIGEST})
    message = (
        r"d\.json: the data have digest abab.*, but config\.yaml pins 0000.*; correct `digest`, or delete that manif"
    )
    with pytest.raises(InputError, match=message):
        check_digest(manifest, tmp_path / "check.json", pinned="0" * 64)
    assert not (tmp_path / "check.json").exists()
