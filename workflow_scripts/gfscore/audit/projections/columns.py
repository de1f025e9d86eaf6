"""Columns of the tables on projections along the latent dimensions of a mapper."""

import pyarrow as pa

from gfscore.tables.table import MODEL

_TASK = ("dataset", pa.string(), "task: data evaluated, whose labels the model predicts")

_MODEL = (
    _TASK,
    *MODEL[1:],
    ("mapper", pa.string(), "key of config.yaml's mappers"),
)

_OWN = ("own", pa.bool_(), "it is the task itself, not a sensitive attribute, and in no mean over dimensions")

_CONSTANT = ("constant", pa.bool_(), "same class for all decoded images, so that Tolerance 1 is meaningless")

_CONTEXT = (
    ("censored", pa.float64(), "share of the moves that change no prediction; sides at a limit do not count"),
    ("agreement", pa.float64(), "share of the samples with the same prediction for sample and reconstruction"),
    ("accuracy", pa.float64(), "clean accuracy on the same samples"),
    ("decoded_accuracy", pa.float64(), "accuracy on their reconstructions"),
)

_COUPLING = (
    ("coupling", pa.float64(), "Coupling as printed; 0 if balanced and if most unbalanced; only over all dimensions"),
    ("coupling_entropy", pa.float64(), "normalised entropy of 1 - Tol: 1 all dimensions equal, 0 one alone; likewise"),
    ("effective_dimensions", pa.float64(), "effective number of dimensions with an influence, 1..D; likewise"),
)

_DIFFERENCES = {"dp": "demographic parity", "eopp": "equal opportunity", "eodd": "equalized odds"}

GROUP_METRICS = tuple(_DIFFERENCES)
"""Differences between groups that the paper compares with Tolerance and Deviation."""

SCALED = {"tolerance": True, "deviation": False, "coupling": False, **dict.fromkeys(GROUP_METRICS, False)}
"""Whether higher is better, for the metrics that the paper scales to 0..100."""

_GROUPS = (
    *(
        (name, pa.float64(), f"{meaning} between groups, mean over classes and attributes; 0 is equal; null without")
        for name, meaning in _DIFFERENCES.items()
    ),
    ("group_measure", pa.string(), "measure whose predictions they are computed from"),
    ("group_attributes", pa.int64(), "number of attributes they are averaged over: those defined for every model"),
)

PROJECTION_COLUMNS = {
    "projection_scores": (
        *_MODEL,
        ("dimension_index", pa.int32(), "latent dimension, 0..D-1; -1 for the mean over all"),
        ("dimension", pa.string(), "its name; all for the mean over all"),
        _OWN,
        ("class_index", pa.int32(), "class, 0..K-1; -1 for all samples together"),
        ("class_name", pa.string(), "name of the class; all for all samples together"),
        ("n", pa.int64(), "samples projected"),
        ("small", pa.bool_(), "too few samples for Coupling and its entropy"),
        _CONSTANT,
        (
            "tolerance",
            pa.float64(),
            "mean Tolerance, 0..1, units of sigma; higher is better; 1 for a constant classifier",
        ),
        ("tolerance_low", pa.float64(), "lower bound of the population mean, of this row alone"),
        ("tolerance_high", pa.float64(), "upper bound, likewise"),
        ("confidence", pa.float64(), "confidence of the bounds"),
        ("deviation", pa.float64(), "mean Deviation, at most 1 - tolerance; lower is better; null: one side only"),
        ("up", pa.float64(), "mean move upwards, 1 if none changes the prediction; without samples at a limit"),
        ("down", pa.float64(), "mean move downwards, likewise"),
        (
            "tolerance_agreeing",
            pa.float64(),
            "Tolerance of the samples with the same prediction for the reconstruction",
        ),
        *_CONTEXT,
        *_COUPLING,
    ),
    "projection_models": (
        *_MODEL,
        ("n", pa.int64(), "samples projected"),
        ("dimensions", pa.int64(), "latent dimensions moved, D, without those of the task itself"),
        ("resized", pa.string(), "sizes of images: for the mapper, and back for the classifier; null where equal"),
        _CONSTANT,
        ("tolerance", pa.float64(), "mean over dimensions and samples"),
        ("deviation", pa.float64(), "mean over dimensions and samples; null if moves have one side only"),
        *_CONTEXT,
        ("task_accuracy", pa.float64(), "clean accuracy on all samples of the task, those of dp, eopp and eodd"),
        *_COUPLING,
        *_GROUPS,
        *(
            (
                f"{name}_scaled",
                pa.float64(),
                f"{name}, scaled from 0 (worst) to 100 (best) of these models without constant ones; not comparable "
                "across runs",
            )
            for name in SCALED
        ),
    ),
    "projection_attributes": (
        *_MODEL,
        ("attribute", pa.string(), "attribute, or latent dimension that is none"),
        _OWN,
        ("dimensions", pa.int64(), "latent dimensions of it that the mapper moves; 0: none, so groups alone differ"),
        ("n", pa.int64(), "samples projected"),
        _CONSTANT,
        ("tolerance", pa.float64(), "mean over its dimensions and samples; null where it is not moved"),
        ("deviation", pa.float64(), "likewise; null too where moves have one side only, as those of attributes"),
        ("censored", pa.float64(), "share of its moves that change no prediction"),
        *(
            (
                name,
                pa.float64(),
                f"{meaning} between its groups; 0 is equal; null without groups, or if a cell is empty",
            )
            for name, meaning in _DIFFERENCES.items()
        ),
    ),
    "projection_ranks": (
        _TASK,
        ("mapper", pa.string(), "key of config.yaml's mappers"),
        ("first", pa.string(), "column that ranks the models"),
        ("second", pa.string(), "other column that ranks the models"),
        ("n", pa.int64(), "models ranked by both"),
        ("rho", pa.float64(), "Spearman rank correlation, both oriented so that higher is better; null: undefined"),
    ),
    "projection_effects": (
        ("mapper", pa.string(), "key of config.yaml's mappers"),
        ("dimension_index", pa.int32(), "latent dimension, 0..D-1"),
        ("dimension", pa.string(), "its name"),
        ("sigma", pa.float64(), "its unit: standard deviation of the aggregated latent, or range of a condition"),
        ("divergence", pa.float64(), "from the prior, nats; near 0: not used by the decoder; null without a prior"),
        ("trait", pa.string(), "trait of decoded images, or an attribute"),
        ("how", pa.string(), "measured on the image, or by a classifier of the attribute"),
        ("shift", pa.float64(), "mean change from -sigma to +sigma, in standard deviations or of the probability"),
        ("strength", pa.float64(), "mean absolute change, likewise"),
        ("tolerance", pa.float64(), "Tolerance of the dimension, mean over the non-constant models of the dataset"),
        ("censored", pa.float64(), "share of its moves that change no prediction, mean over the same models"),
        ("accuracy", pa.float64(), "clean accuracy of the same samples, mean over the same models"),
        ("models", pa.int64(), "number of non-constant models"),
    ),
}
"""Columns by table."""
