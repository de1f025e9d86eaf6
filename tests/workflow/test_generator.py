"""An audit on samples of a user's generator, with and without a stated share of wrong labels."""

import numpy as np
import pytest
import yaml

from gfscore.core.files import read_json
from gfscore.statistics import SCALE as B
from gfscore.tables.parquet_tables import read_table
from gfscore.workflow.catalogue import CATALOGUE
from helpers.configurations import place_network, small_audit
from helpers.networks import place_generator

pytestmark = [pytest.mark.workflow, pytest.mark.seconds(50)]

NAMES = ["black", "grey", "white"]
RATES = [0.1, 0.2, 0.0]
OPTIONS = ("--configfile", "generator.yaml", "--omit-from", "plot_figures")


@pytest.fixture(scope="module")
def repository(fresh_copy):
    """Audits `plain` and `stated` on samples of one generator; the latter says how many labels are wrong."""
    copy = fresh_copy()
    generator = place_generator(copy.path, "weights", classes=3) | {"path": "generator.pt", "samples_per_class": 40}
    drawn = {"classes": NAMES, "models_of": "z", "generator": generator}
    network = place_network(copy.path, "Network", image_shape=(1, 2, 2), classes=3)
    audit = small_audit(copy.config(), dataset="plain", models=["z/none/Network"]) | {"calibration": None}
    configuration = {
        "audits": {name: audit | {"title": name, "dataset": name} for name in ("plain", "stated")},
        "datasets": {"plain": drawn, "stated": drawn | {"label_error_rate": RATES}},
        "models": {"z": {"none": {"Network": network}}},
    }
    (copy.path / "generator.yaml").write_text(yaml.safe_dump(configuration))
    copy.rules = copy.ran(*OPTIONS)
    return copy


def test_samples_are_drawn_once_and_read_as_a_dataset(repository):
    assert repository.rules["draw_samples"] == 2
    manifests = [read_json(repository.path / f"results/datasets/{name}.json") for name in ("plain", "stated")]
    assert manifests[0]["digest"] == manifests[1]["digest"]
    assert manifests[0]["samples_per_class"] == [40, 40, 40] and manifests[0]["image_shape"] == [1, 2, 2]
    assert not repository.planned(*OPTIONS)[0]
    # What the images are made of is watched: the code of the network too.
    with (repository.path / "architectures/known.py").open("a") as file:
        file.write("\n")
    assert {"draw_samples", "fetch_dataset"} <= set(repository.planned(*OPTIONS)[0])


def test_a_stated_share_of_wrong_labels_widens_the_bounds(repository):
    plain, stated = (
        read_table(repository.path / f"results/audits/{name}/class_scores.parquet", CATALOGUE["class_scores"])
        .query("measure == 'great-softmax'")
        .reset_index()
        for name in ("plain", "stated")
    )
    np.testing.assert_array_equal(stated["value"], plain["value"])
    eta = np.array(RATES)
    np.testing.assert_allclose(stated["low"], np.maximum((plain["low"] - eta * B) / (1 - eta), 0), atol=1e-12)
    np.testing.assert_allclose(stated["high"], np.minimum(plain["high"] / (1 - eta), B), atol=1e-12)
    assert plain["label_error_rate"].isna().all() and stated["label_error_rate"].tolist() == RATES
