"""Every kind of file that the workflow reads.

`make(folder)` writes a whole one and returns its path; `read(path)` does what a step does, checks that the result is
well formed, and returns what must be equal to the original where `exact` (the format carries a checksum). Damages of
it are tried in `cases`.
"""

from dataclasses import dataclass
from typing import Any

from faults import attribute_files, kept_files, mapper_files, model_files, result_files, user_files
from faults.user_files import AS_STORED


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    name: str
    make: Any
    read: Any
    cases: int = 100
    exact: bool = False
    json: bool = False


KINDS = [
    Kind("logits.npy", user_files.npy_logits, user_files.read_user_logits),
    Kind("logits.npz", user_files.npz_logits, user_files.read_user_logits, exact=True),
    Kind("logits.csv", user_files.csv_logits, user_files.read_user_logits),
    Kind("logits.csv.gz", user_files.gzipped_logits, user_files.read_user_logits, exact=True),
    Kind("logits.parquet", user_files.parquet_logits, user_files.read_user_logits, exact=True),
    Kind("radii.tsv", user_files.tsv_radii, user_files.read_radii),
    Kind("images.npz", user_files.npz_images, user_files.images_of(source="npz", value_range=255, channels="last"), exact=True),
    Kind("labels.npy", user_files.npy_labels, user_files.read_labels),
    Kind("labels.csv", user_files.csv_labels, user_files.read_labels),
    Kind("images.parquet", user_files.parquet_images, user_files.images_of(source="parquet", image="image", label="label", part=None, preprocessing=AS_STORED)),
    Kind("folder of PNG", user_files.folder_images("PNG"), user_files.read_folder),
    Kind("folder of JPEG", user_files.folder_images("JPEG"), user_files.read_folder),
    Kind("folder of TIFF", user_files.folder_images("TIFF"), user_files.read_folder),
    Kind("list of images", user_files.listed_images, user_files.read_listed),
    Kind("corrupted images", user_files.corrupted_images, user_files.read_corrupted),
    Kind("CIFAR", user_files.cifar_pickle, user_files.read_cifar),
    Kind("attributes of CelebA", attribute_files.celeba_attributes, attribute_files.read_celeba_attributes),
    Kind("partition of CelebA", attribute_files.celeba_partition, attribute_files.read_celeba),
    Kind("attributes.csv", attribute_files.table_csv, attribute_files.read_table),
    Kind("attributes.csv.gz", attribute_files.table_gzipped, attribute_files.read_table, exact=True),
    Kind("attributes.parquet", attribute_files.table_parquet, attribute_files.read_table, exact=True),
    Kind("attributes beside images", attribute_files.columns_parquet, attribute_files.read_columns, exact=True),
    Kind("PyTorch checkpoint", model_files.pt("zip"), model_files.read_weights),
    Kind("old PyTorch checkpoint", model_files.pt("old"), model_files.read_weights),
    Kind("safetensors", model_files.safetensors, model_files.read_weights),
    Kind("trained classifier", model_files.trained, model_files.read_trained),
    Kind("timm", model_files.timm_weights, model_files.read_timm, cases=20),
    Kind("head of a probe", model_files.probe_head, model_files.read_probe, cases=20),
    Kind("mapper", mapper_files.mapper, mapper_files.read_mapper),
    Kind("ONNX", model_files.onnx_graph, model_files.read_onnx),
    Kind("logits table", result_files.logits_table, result_files.read_logits_table, exact=True),
    Kind("samples table", result_files.samples_table, result_files.read_samples_table, exact=True),
    Kind("scores table", result_files.scores_table, result_files.read_scores_table, exact=True),
    Kind("manifest of a dataset", result_files.dataset_manifest, result_files.read_dataset_manifest, exact=True, json=True),
    Kind("manifest of a model", result_files.model_manifest, result_files.read_model_manifest, exact=True, json=True),
    Kind("selection", result_files.selection_file, result_files.read_selection, exact=True, json=True),
    Kind("attributes table", attribute_files.attributes_table, attribute_files.read_attributes_table, exact=True),
    Kind("pictures of a mapper", mapper_files.pictures, mapper_files.read_pictures, exact=True),
    Kind("kept part of a measure", kept_files.kept_part, kept_files.read_kept_part, exact=True),
    Kind("kept training", kept_files.kept_training, kept_files.read_kept_training, exact=True),
    Kind("recorded digest", kept_files.recorded_digest, kept_files.read_recorded_digest, exact=True),
    Kind("calibration", result_files.calibration_file, result_files.read_calibration, exact=True, json=True),
    Kind("verdict", result_files.verdict_file, result_files.read_verdict, json=True),
]  # fmt: skip
