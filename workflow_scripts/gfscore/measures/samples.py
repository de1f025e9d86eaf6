"""Columns of the samples tables: those that every measure writes, and each kind's own."""

import pyarrow as pa

SAMPLE_COLUMNS = (
    ("sample_id", pa.string(), "name of the sample within its dataset"),
    ("label", pa.int32(), "true class, 0..K-1"),
    ("prediction", pa.int32(), "predicted class; a tie at the top counts against the true class"),
    ("value", pa.float64(), "the measure, in its declared range"),
    ("censored", pa.bool_(), "the value is a bound, not a measurement"),
)

ALREADY_WRONG = "clean"
"""What stands in place of an attack's name for a sample that is misclassified anyway."""

_CLEAN = (("clean_prediction", pa.int32(), "predicted class of the undisturbed sample; null where unknown"),)

OWN_COLUMNS = {
    "adversarial": (
        *_CLEAN,
        ("attack", pa.string(), "attack that succeeded first, clean for a sample that is wrong anyway; null: none"),
        ("distance", pa.float64(), "norm of the perturbation that succeeded; null: none"),
        ("steps", pa.int64(), "forward passes spent on the sample"),
    ),
    "minimal": (
        *_CLEAN,
        ("attack", pa.string(), "attack that found the nearest example, clean for a sample that is wrong anyway"),
        ("steps", pa.int64(), "forward passes spent on the sample"),
    ),
    "certified": (
        *_CLEAN,
        ("radius", pa.float64(), "certified radius of the prediction, right or wrong; 0 for an abstention"),
        ("abstained", pa.bool_(), "no class had a proven majority"),
        ("draws", pa.int64(), "noisy copies classified; null where unknown"),
        ("lower_bound", pa.float64(), "lower confidence bound of the top class's probability; null where unknown"),
        ("attacked", pa.bool_(), "the certificate was attacked; null where unknown"),
        ("refuted", pa.bool_(), "an attack on the smoothed classifier showed it wrong; null where unknown"),
    ),
    "probabilistic": (
        *_CLEAN,
        ("state", pa.string(), "robust, not_robust or undecided"),
        ("changes", pa.int64(), "perturbed copies that were classified otherwise"),
        ("draws", pa.int64(), "perturbed copies classified"),
    ),
    "corruption": (
        *_CLEAN,
        ("corruption", pa.string(), "kind of corruption"),
        ("severity", pa.int32(), "1 (mild) to 5 (strong)"),
    ),
    # value: Tolerance of one latent dimension; prediction: that on the reconstruction; censored: on either side.
    # Of tied classes both predictions are the first, whatever the label.
    "projection": (
        *_CLEAN,
        ("dimension", pa.string(), "latent dimension of the mapper that is moved"),
        ("up", pa.float64(), "smallest move upwards that changes the prediction, 1 where none does; null without room"),
        ("down", pa.float64(), "smallest move downwards, likewise; both in sigma, or of the way to a nearer end"),
        ("up_censored", pa.bool_(), "no move upwards changes the prediction; false without room to move"),
        ("down_censored", pa.bool_(), "no move downwards does"),
    ),
    "targeted": (
        *_CLEAN,
        ("target", pa.int32(), "class that the attack aims at"),
        ("distance", pa.float64(), "norm of the perturbation, successful or not"),
    ),
}
"""Columns by kind of measure, for kinds that have any of their own.

Several rows of one sample (a corruption, a severity, a target each) count as one sample: its value is their mean.
"""

SAMPLES_VERSIONS = {"projection": 2}
"""Versions of the tables of these kinds, 1 where none stands."""


def table_of(kind):
    """Name of the samples table that a kind of measure writes, a key of gfscore.tables.parquet_tables.TABLES."""
    return f"samples of kind {kind}" if kind in OWN_COLUMNS else "samples"
