import re
from collections import Counter
from pathlib import Path

import pytest

from gfscore.core.errors import InputError
from gfscore.core.settings import NAME_FORM
from gfscore.networks import leaderboard
from studies import reference

ROOT = Path(__file__).resolve().parents[3]


def test_the_table_holds_every_entry_and_says_which_can_be_loaded():
    counts = Counter(listing.status for listing in leaderboard.listings())
    assert counts == {"supported": 206, "undefined": 30}


def test_support_and_leaderboard_list_the_same_entries():
    support = [(row["dataset"], row["threat"], row["model"]) for row in leaderboard._rows("robustbench_support.csv")]
    listed = [(listing.dataset, listing.threat, listing.model) for listing in leaderboard.listings()]
    assert support == listed
    assert len(set(listed)) == 236


@pytest.mark.parametrize(
    ("dataset", "threat", "table", "count"),
    [
        ("cifar10", "L2", reference.gf_score_table3, 17),
        ("imagenet", "Linf", reference.gf_score_table4, 5),
    ],
)
def test_the_models_of_the_gf_score_paper_are_supported_with_the_accuracies_that_it_prints(
    dataset, threat, table, count
):
    printed = table()["robust_accuracy_pct"]
    assert len(printed) == count
    for model, percent in printed.items():
        entry = leaderboard.entry(dataset, threat, model, folder="checkpoints")
        assert entry["published_robust_accuracy"] == pytest.approx(percent / 100)
        assert 0.5 < entry["published_clean_accuracy"] < 1


def test_an_entry_is_what_config_would_hold():
    assert leaderboard.entry("cifar10", "L2", "Ding2020MMA", folder="checkpoints") == {
        "source": "robustbench",
        "dataset": "cifar10",
        "threat": "L2",
        "model": "Ding2020MMA",
        "path": "checkpoints",
        "architecture": "WideResNet-28-4",
        "sha256": None,
        "trust_pickle": False,
        "published_clean_accuracy": 0.8802,
        "published_robust_accuracy": 0.6609,
        "clean_accuracy_tolerance": 0.005,
    }


def test_accuracies_are_fractions():
    for listing in leaderboard.listings():
        assert 0 < listing.clean_accuracy < 1
        if listing.threat != "corruptions":
            assert 0 <= listing.autoattack_accuracy < listing.clean_accuracy
    corrupted = leaderboard.entry("cifar10", "corruptions", "Hendrycks2020AugMix_WRN", folder=".")
    assert corrupted["published_robust_accuracy"] is None


def test_names_can_be_names_in_config():
    assert [listing.model for listing in leaderboard.listings() if not NAME_FORM.fullmatch(listing.model)] == []


def test_files_lie_where_robustbench_looks_for_them():
    def files(*key):
        return [path.as_posix() for path in leaderboard.checkpoint_files(*key, folder="c")]

    assert files("cifar10", "L2", "Ding2020MMA") == ["c/cifar10/L2/Ding2020MMA.pt"]
    assert files("cifar10", "Linf", "Chen2020Adversarial") == [
        f"c/cifar10/Linf/Chen2020Adversarial.pt_m{member}.pt" for member in range(3)
    ]


def test_every_supported_model_has_one_address_per_file():
    for listing in leaderboard.listings():
        key = listing.dataset, listing.threat, listing.model
        if listing.supported:
            assert len(listing.files) == len(leaderboard.checkpoint_files(*key, folder="c")) > 0
            assert all(url.startswith("https://") for url in listing.files)
            assert listing.loading in ("robustbench", "ensemble", "timm", "torchvision")
        else:
            assert listing.reason
            assert not listing.files


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("cifar10", "L2", "Ding2020MNA"), "cifar10/L2: model 'Ding2020MNA' is unknown; did you mean 'Ding2020MMA'"),
        (("cifar10", "l2", "Ding2020MMA"), "'cifar10/l2' is unknown; did you mean 'cifar10/L2'"),
        (("imagenet", "L2", "Salman2020Do_R50"), "'imagenet/L2' is unknown; did you mean 'imagenet/Linf'"),
        (("cifar10", "Linf", "Kundu2020Unknown"), "model 'Kundu2020Unknown' is unknown"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(key, message):
    with pytest.raises(InputError, match=message):
        leaderboard.entry(*key, folder="c")


def test_a_model_that_the_package_does_not_define_is_refused_with_the_reason():
    undefined = next(listing for listing in leaderboard.listings() if not listing.supported)
    with pytest.raises(
        InputError, match=r"cannot be audited: robustbench 1\.1\.1 lists its results, but defines no model"
    ):
        leaderboard.checkpoint_files(undefined.dataset, undefined.threat, undefined.model, folder="c")


def test_the_document_says_what_the_table_says():
    text = (ROOT / "docs/robustbench.md").read_text()
    rows = re.findall(r"^\| (\w+)/(\w+) \| (\d+) \| (\d+) \| (.*) \|$", text, flags=re.MULTILINE)
    stated = {(dataset, threat): (int(listed), int(loaded), names) for dataset, threat, listed, loaded, names in rows}
    expected = {}
    for pair in {(listing.dataset, listing.threat) for listing in leaderboard.listings()}:
        listed = leaderboard.listings(*pair)
        missing = ", ".join(f"`{listing.model}`" for listing in listed if not listing.supported) or "none"
        expected[pair] = (len(listed), sum(listing.supported for listing in listed), missing)
    assert stated == expected
    ways = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", text, flags=re.MULTILINE))
    loadings = Counter(listing.loading for listing in leaderboard.listings() if listing.supported)
    assert ways == {loading: str(count) for loading, count in loadings.items()}
