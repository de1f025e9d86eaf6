"""Readable class names: ImageNet's wnids in the right order, every name once."""

from gfscore.core.labels import imagenet_names, readable_class, readable_classes


def test_names_that_the_gf_score_paper_gets_wrong():
    assert readable_class("n04525038") == "velvet (n04525038)"
    assert readable_class("n12057211") == "yellow lady's slipper (n12057211)"


def test_thousand_unique_names_in_the_order_of_class_indices():
    wnids, names = list(imagenet_names()), list(imagenet_names().values())
    assert len(wnids) == len(set(names)) == 1000
    assert wnids == sorted(wnids)
    assert (names[0], names[134], names[217], names[999]) == (
        "tench", "crane bird", "English springer", "toilet tissue",
    )  # fmt: skip


def test_other_names_stay_as_they_are():
    assert readable_classes(["cat", "n04525038"]) == ["cat", "velvet (n04525038)"]
    assert readable_classes(["n04525038", "n01440764"]) == ["velvet", "tench"]
    assert readable_classes(["n99999999", "8"]) == ["n99999999", "8"]
    assert readable_classes([]) == []
