"""Inputs as people bring them: each leads to the numbers of plain code, or is refused in words that help."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

import gfscore
from gfscore.images.datasets import open_images
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import open_classifier
from gfscore.tables.logit_files import read_labels_file
from gfscore.workflow.command import ERROR, main
from gfscore.workflow.configuration import resolved_configuration
from gfscore.workflow.plan import Run
from helpers import inputs_of_people as people

pytestmark = pytest.mark.seconds(120)

IMAGE_FOLDER = "--image-folder"
"""Option that says where the files of a list are."""

SECTIONS = {"datasets", "models", "measures", "audits"}
"""Sections of the file that is written."""


@dataclass(frozen=True)
class Case:
    """An input: the function that writes it, what is typed, and what must follow.

    `typed` after gfscore audit, words as a tuple where they hold blanks; `says`: texts that must stand in the lines, or
    in the refusal; `files`: files that the model's manifest must list; `within`: how far logits may be from plain code.
    """

    write: object
    typed: str | tuple[str, ...]
    says: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    within: float = 1e-4

    @property
    def words(self):
        """Words of the command line."""
        return self.typed.split() if isinstance(self.typed, str) else list(self.typed)


ONNX = "net.onnx images"
BESIDE = ("weights.bin",)
SCRIPT = "net.pt images --trust-code"
PROGRAM = "net.pt2 images --trust-code"
NAMED = "net.onnx images --labels"
LISTED = "net.onnx data"
KINDS = "net.onnx kinds --preprocessing none"
HALF = 2e-2
"""How far logits of float16 are from each other where sums are taken in another order."""

ACCEPTED = [
    # 1. Weights in files beside the graph.
    Case(people.onnx_of_logits, ONNX),
    Case(people.onnx_by_todays_exporter, ONNX, files=("net.onnx", "net.onnx.data")),
    Case(people.onnx_with_onnx_data, ONNX, files=("net.onnx", "net.onnx_data")),
    Case(people.onnx_with_a_file_per_tensor, ONNX, files=("net.onnx", "0.weight", "9.bias")),
    Case(people.onnx_with_constants_beside, ONNX, files=("net.onnx", "net.bin")),
    # 2. Heads.
    Case(people.onnx_ending_in_softmax, ONNX, says=("softmax",)),
    Case(people.onnx_ending_in_softmax_with_channels_last, ONNX, says=("softmax",)),
    Case(people.onnx_ending_in_log_softmax, ONNX, says=("softmax",)),
    Case(people.onnx_ending_in_sigmoids, ONNX, says=("sigmoid",)),
    Case(people.exported_program_ending_in_softmax, PROGRAM, says=("softmax",)),
    Case(people.onnx_with_a_softmax_of_many_operators, f"{ONNX} --probabilities", says=("logarithm",)),
    Case(people.onnx_with_a_softmax_that_overflows, f"{ONNX} --probabilities", says=("logarithm",)),
    Case(people.onnx_of_an_average_of_two, f"{ONNX} --probabilities", says=("logarithm",)),
    Case(people.torchscript_ending_in_softmax, f"{SCRIPT} --probabilities", says=("logarithm",)),
    Case(
        people.python_file_ending_in_softmax,
        "weights.pth images --architecture with_softmax.py:build --probabilities",
        says=("logarithm",),
    ),
    Case(people.file_of_probabilities, "answers.npz --probabilities", says=("logarithm",)),
    Case(people.csv_of_probabilities, "answers.csv --probabilities", says=("logarithm",)),
    # 3. One output.
    Case(people.onnx_with_one_logit, KINDS),
    Case(people.onnx_with_one_sigmoid, KINDS, says=("sigmoid",)),
    Case(people.onnx_with_one_flat_logit, KINDS),
    Case(people.python_file_with_one_logit, "weights.pth kinds --architecture one_logit.py:build --preprocessing none"),
    Case(
        people.python_file_with_one_sigmoid,
        "weights.pth kinds --architecture one_sigmoid.py:build --probabilities --preprocessing none",
        says=("logarithm",),
    ),
    Case(
        people.exported_program_with_one_sigmoid, "net.pt2 kinds --trust-code --preprocessing none", says=("sigmoid",)
    ),
    Case(people.csv_of_one_probability, "answers.csv --probabilities", says=("logarithm",)),
    # 4. Several outputs.
    Case(people.onnx_with_features_first, ONNX, says=(people.LOGITS,)),
    Case(people.onnx_with_logits_and_probabilities, f"{ONNX} --output {people.LOGITS}", says=(people.LOGITS,)),
    Case(people.onnx_with_logits_and_probabilities, f"{ONNX} --output probabilities", says=("softmax",)),
    Case(people.onnx_with_predicted_classes, KINDS, says=("probability", "sigmoid")),
    Case(people.onnx_with_an_auxiliary_head, f"{ONNX} --output {people.LOGITS}", says=(people.LOGITS,)),
    Case(people.onnx_with_an_auxiliary_head, f"{ONNX} --output 1", says=("output 1",)),
    Case(people.python_file_with_a_tuple, "weights.pth images --architecture with_tuple.py:build"),
    Case(people.python_file_with_a_dict, "weights.pth images --architecture with_dict.py:build", says=("logits",)),
    Case(people.python_file_with_an_object, "weights.pth images --architecture with_object.py:build", says=("logits",)),
    Case(
        people.python_file_with_an_auxiliary_head,
        "weights.pth images --architecture with_auxiliary.py:build --output 1",
    ),
    Case(people.torchscript_with_a_tuple, SCRIPT),
    Case(people.exported_program_with_a_tuple, PROGRAM),
    # 5. Number types.
    Case(people.onnx_in_half_precision, ONNX, says=("float16",), within=HALF),
    Case(people.onnx_with_weights_in_half_precision, ONNX, says=("float16",), within=HALF),
    Case(people.onnx_in_bfloat16, ONNX, says=("bfloat16",), within=0.1),
    Case(people.onnx_for_double_images, ONNX, says=("float64",)),
    Case(people.onnx_for_images_of_bytes, ONNX, says=("uint8",)),
    Case(people.weights_in_half_precision, "weights.pth images --architecture halved.py:marabou"),
    Case(people.safetensors_in_bfloat16, "net.safetensors images --architecture brain.py:marabou"),
    Case(people.weights_in_double_precision, "weights.pth images --architecture doubled.py:marabou"),
    Case(people.torchscript_in_half_precision, SCRIPT, says=("float16",), within=HALF),
    Case(people.exported_program_in_double_precision, PROGRAM, says=("float64",)),
    # 6. Names of the outputs.
    Case(people.names_in_lines, f"{NAMED} names.txt"),
    Case(people.names_in_lines_with_numbers, f"{NAMED} names.txt"),
    Case(people.names_in_lines_with_numbers_and_colons, f"{NAMED} names.txt"),
    Case(people.names_behind_wnids, "net.onnx val --labels synset.txt"),
    Case(people.names_in_a_json_list, f"{NAMED} names.json"),
    Case(people.names_in_json_by_number, f"{NAMED} names.json"),
    Case(people.names_in_json_by_name, f"{NAMED} class_to_idx.json"),
    Case(people.names_in_a_config, f"{NAMED} config.json"),
    Case(people.names_as_keras_has_them, "net.onnx val --labels class_index.json"),
    Case(people.names_in_yaml_list, f"{NAMED} data.yaml"),
    Case(people.names_in_yaml_by_number, f"{NAMED} data.yaml"),
    Case(people.names_in_csv, f"{NAMED} names.csv"),
    Case(people.names_in_csv_without_header, f"{NAMED} names.csv"),
    Case(people.frogs_and_ships, "net.onnx two --labels names.txt --preprocessing none"),
    Case(people.ten_of_a_thousand, "net.onnx val", says=("1000 outputs",)),
    Case(people.a_class_folder_without_images, "net.onnx pictures", says=("truck",)),
    Case(people.class_folders_by_number, "net.onnx numbered"),
    # 7. Arrays.
    Case(people.arrays_images_and_labels, "net.onnx data.npz"),
    Case(people.arrays_imgs_and_targets, "net.onnx data.npz"),
    Case(people.arrays_data_and_label, "net.onnx data.npz"),
    Case(people.arrays_for_training_and_test, "net.onnx data.npz", says=("x_test", "y_test")),
    Case(people.arrays_as_medmnist_has_them, "net.onnx data.npz", says=("test_images", "test_labels")),
    Case(people.labels_in_a_column, "net.onnx data.npz"),
    Case(people.labels_one_hot, "net.onnx data.npz"),
    Case(people.floats_up_to_255, "net.onnx data.npz", says=("255",)),
    Case(people.floats_from_minus_one, "net.onnx data.npz", says=("-1 to 1",)),
    Case(people.npy_files_in_a_folder, "net.onnx arrays"),
    Case(people.npy_files_of_test_data, "net.onnx arrays", says=("test_images", "test_labels")),
    Case(people.arrays_of_two_kinds, "net.onnx data.npz --arrays clean,truth", says=("clean", "truth")),
    Case(people.labels_as_text_numbers, "net.onnx data.npz"),
    Case(people.arrays_beside_objects, "net.onnx data.npz"),
    Case(people.npy_files_beside_objects, "net.onnx arrays"),
    # 8. CSV.
    Case(people.csv_as_kaggle_has_it, LISTED, says=("train",)),
    Case(people.csv_as_kaggle_has_it, f"net.onnx data/labels.csv {IMAGE_FOLDER} data/train"),
    Case(people.csv_with_names_without_ending_in_the_same_folder, LISTED, says=("id",)),
    Case(people.csv_with_the_index_of_pandas, LISTED, says=("column",)),
    Case(people.csv_with_an_unnamed_column_of_data, LISTED),
    Case(people.csv_beside_one_folder_of_images, LISTED, says=("images",)),
    Case(people.csv_beside_two_folders_that_fit, f"net.onnx data/labels.csv {IMAGE_FOLDER} data/original"),
    Case(people.csv_with_semicolons, LISTED),
    Case(people.csv_with_labels_in_numbers, LISTED),
    # 9. Orientation.
    Case(people.photographs_that_are_turned, "net.onnx photos", says=("120", "EXIF")),
    Case(people.photographs_with_a_stale_tag, "net.onnx photos", says=("120", "stored")),
    Case(people.three_photographs_that_are_turned, "net.onnx photos", says=("3 ", "--orientation")),
    Case(people.three_photographs_to_be_turned, "net.onnx photos --orientation exif", says=("3 ", "EXIF")),
    # 11. Names, copies and values.
    Case(people.folder_with_line_breaks_in_its_name, ("net.onnx", people.SECTIONS_AS_A_NAME)),
    Case(people.folder_with_other_ends_of_lines_in_its_name, ("net.onnx", people.ENDS_OF_LINES_AS_A_NAME)),
    Case(people.folder_with_a_blank_and_an_accent, ("net.onnx", "mes données (1)")),
    Case(people.same_pixels_under_one_label, "net.onnx copies"),
    Case(people.logits_that_are_always_right, "answers.npz"),
    # Neighbours.
    Case(people.network_that_is_compiled, "weights.pth images --architecture wrapped.py:marabou"),
]

REFUSED = [
    # 1. Weights in files beside the graph.
    Case(people.onnx_without_its_data_file, ONNX, BESIDE),
    Case(people.onnx_with_a_short_data_file, ONNX, BESIDE),
    Case(people.onnx_with_a_linked_data_file, ONNX, BESIDE),
    Case(people.onnx_with_data_in_another_folder, "model/net.onnx images", BESIDE),
    Case(people.onnx_with_data_at_an_absolute_path, ONNX, BESIDE),
    Case(people.onnx_with_data_in_a_folder_below, ONNX, BESIDE),
    Case(people.onnx_with_an_offset_beyond_the_file, ONNX, BESIDE),
    Case(people.onnx_with_a_negative_offset, ONNX, ("net.onnx",)),
    # 2. Heads.
    Case(people.onnx_with_a_softmax_of_many_operators, ONNX, ("net.onnx", "--probabilities", "PROBABILITIES=1")),
    Case(people.onnx_of_an_average_of_two, ONNX, ("net.onnx", "--probabilities")),
    Case(people.torchscript_ending_in_softmax, SCRIPT, ("net.pt", "--probabilities")),
    Case(
        people.python_file_ending_in_softmax,
        "weights.pth images --architecture with_softmax.py:build",
        ("weights.pth", "--probabilities"),
    ),
    Case(people.file_of_probabilities, "answers.npz", ("answers.npz", "--probabilities")),
    Case(people.csv_of_probabilities, "answers.csv", ("answers.csv", "--probabilities")),
    Case(people.onnx_of_logits, f"{ONNX} --probabilities", ("--probabilities",)),
    Case(
        people.file_of_probabilities,
        "answers.npz --probabilities --labels cat,dog",
        ("answers.npz", "--labels cat,dog", "10"),
    ),
    # 3. One output.
    Case(people.onnx_with_one_logit_for_ten_classes, ONNX, ("net.onnx", "10")),
    Case(
        people.python_file_with_one_sigmoid,
        "weights.pth kinds --architecture one_sigmoid.py:build",
        ("weights.pth", "--probabilities"),
    ),
    Case(people.onnx_with_one_logit, "net.onnx kinds", ("net.onnx", "--preprocessing", "half")),
    # 4. Several outputs.
    Case(people.onnx_with_logits_and_probabilities, ONNX, ("net.onnx", "probabilities", people.LOGITS, "--output")),
    Case(people.onnx_with_an_auxiliary_head, ONNX, ("net.onnx", "auxiliary", people.LOGITS, "--output")),
    Case(people.onnx_with_an_auxiliary_head, f"{ONNX} --output logits", ("net.onnx", "auxiliary", people.LOGITS)),
    Case(people.onnx_with_an_auxiliary_head, f"{ONNX} --output 2", ("net.onnx", "auxiliary", people.LOGITS)),
    Case(people.onnx_with_predicted_classes, f"{KINDS} --output label", ("net.onnx", "label", "--output")),
    Case(people.onnx_of_predicted_classes, ONNX, ("net.onnx", "label")),
    Case(people.onnx_with_features_alone, ONNX, ("net.onnx", people.FEATURES)),
    Case(
        people.python_file_with_an_auxiliary_head,
        "weights.pth images --architecture with_auxiliary.py:build",
        ("weights.pth", "--output"),
    ),
    # 6. Names of the outputs.
    Case(people.a_name_too_few, f"{NAMED} names.txt", ("9", "10")),
    Case(people.a_name_twice, f"{NAMED} names.txt", ("cat",)),
    Case(people.a_number_twice, f"{NAMED} names.json", ("names.json", "8")),
    Case(people.numbers_that_are_names_and_places, "net.onnx numbered --labels names.json", ("net.onnx", "--labels")),
    Case(people.numbers_in_json_that_fit_two_orders, "net.onnx numbered --labels names.json", ("net.onnx", "--labels")),
    Case(people.outputs_in_an_unstated_order, ONNX, ("net.onnx", "--labels")),
    Case(people.animals_as_the_first_classes, "net.onnx animals", ("net.onnx", "10", "6", "--labels")),
    Case(people.names_in_lines, f"{NAMED} name.txt", ("name.txt",)),
    # 7. Arrays.
    Case(people.labels_nearly_one_hot, "net.onnx data.npz", ("data.npz",)),
    Case(people.arrays_of_two_kinds, "net.onnx data.npz", ("data.npz", "clean", "noisy", "truth", "--arrays")),
    Case(people.arrays_of_two_kinds, "net.onnx data.npz --arrays cleaned,truth", ("data.npz", "cleaned", "clean")),
    Case(people.arrays_of_two_kinds, "net.onnx data.npz --arrays clean", ("--arrays",)),
    Case(people.arrays_of_unequal_length, "net.onnx data.npz", ("data.npz", "200", "199")),
    Case(people.array_of_images_without_labels, "net.onnx data.npz", ("data.npz", "images")),
    Case(people.labels_as_objects, "net.onnx data.npz", ("data.npz",)),
    # 8. CSV.
    Case(people.csv_with_two_files_for_a_name, LISTED, ("labels.csv", "img0007.jpg", "img0007.png")),
    Case(people.csv_with_an_image_twice, LISTED, ("labels.csv", "img0000")),
    Case(people.csv_with_a_missing_image, LISTED, ("labels.csv", "img0007")),
    Case(
        people.csv_beside_two_folders_that_fit,
        "net.onnx data/labels.csv",
        ("labels.csv", "original", "sharpened", IMAGE_FOLDER),
    ),
    Case(people.csv_beside_two_folders_that_fit, LISTED, ("original", "sharpened")),
    Case(people.csv_as_kaggle_has_it, f"net.onnx data/labels.csv {IMAGE_FOLDER} data/test", ("data/test",)),
    Case(people.csv_leading_out_of_its_folder, LISTED, ("labels.csv", "../img0000.png")),
    # 9. Orientation.
    Case(people.photographs_that_are_turned, "net.onnx photos --orientation upright", ("--orientation", "exif")),
    # 11. Names, copies, sizes and values.
    Case(people.folder_with_braces_in_its_name, "net.onnx pictures{1}", ("pictures{1}",)),
    Case(people.image_whose_name_is_no_utf8, "net.onnx latin", ("latin", "UTF-8")),
    Case(people.same_pixels_under_two_labels, "net.onnx mixed", ("mixed", "copy.png", "cat", "dog")),
    Case(people.same_file_under_two_labels, "net.onnx mixed", ("mixed", "copy.png", "cat", "dog")),
    Case(people.picture_of_150_megapixels, "net.onnx large --size 32", ("poster.png",)),
    Case(people.arrays_that_declare_more_than_they_hold, "net.onnx data.npz", ("data.npz",)),
    Case(people.transformers_with_a_kernel_from_the_hub, "vit images", ("config.json", "kernels-community")),
    Case(people.logits_beyond_float32, "answers.csv", ("answers.csv", "row 5")),
    Case(people.logits_that_are_all_equal, "answers.npz", ("answers.npz",)),
    Case(people.logits_with_an_infinite_value, "answers.npz", ("answers.npz", "row 4")),
    # Neighbours.
    Case(people.pickled_network, "net.pth images --architecture timm:resnet18", ("net.pth",)),
    Case(people.keras_file, "net.keras images", ("net.keras", ".onnx")),
    Case(people.page_in_place_of_a_model, ONNX, ("net.onnx",)),
    Case(people.pointer_in_place_of_a_model, ONNX, ("net.onnx",)),
    Case(people.folders_for_training_and_test, "net.onnx parts", ("parts",)),
]

BY_THE_WHOLE_COMMAND = [
    case
    for case in REFUSED
    if case.write in (people.labels_as_objects, people.image_whose_name_is_no_utf8, people.onnx_without_its_data_file)
]


@pytest.fixture(scope="session")
def real(tmp_path_factory, real_data):
    """The network and the images of which inputs are made."""
    return people.material(real_data, tmp_path_factory.mktemp("people"))


@pytest.fixture
def folder(real, project):
    """The working folder, an empty project with images/ and images.npz."""
    people.place_material(real, project)
    return project


def audited(case, capsys):
    """Exit status, lines and errors of gfscore audit up to the file that it writes."""
    try:
        status = main(["audit", *case.words, "--dry-run"])
    except SystemExit as refused:
        # Options that the parser refuses.
        status = refused.code
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    return status, said.out, said.err


def name_of(case):
    """Name of a case: its function, and the options that are typed."""
    options = [word.lstrip("-") for word in case.words[2:] if word not in ("--trust-code", "--architecture")]
    return "-".join([case.write.__name__, *options])


def files_below(folder):
    """Paths and contents of all files of a folder."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path: path.read_bytes() for path in paths}


def as_bytes(images):
    """Each image as text of its pixels, in 8 bits."""
    return [picture.tobytes() for picture in np.rint(images * 255).astype(np.uint8)]


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_an_input_that_works_gives_the_numbers_of_plain_code(case, real, folder, capsys):
    plain = case.write(real, folder)
    status, lines, errors = audited(case, capsys)
    assert status == 0, errors
    assert f"{plain.accuracy:.1%}" in lines
    missing = [text for text in case.says if text.casefold() not in lines.casefold()]
    assert not missing, lines

    (written,) = (folder / "audits").glob("*.yaml")
    assert set(yaml.safe_load(written.read_text(encoding="utf-8"))) <= SECTIONS
    config = resolved_configuration([written], {}).config
    (dataset,), (zoo,) = config["datasets"], config["models"]
    require_data(config, dataset, plain)
    ((threat, models),) = config["models"][zoo].items()
    (model,) = models
    if config["models"][zoo][threat][model]["source"] != "logits":
        assert any("adversarial" in measure for measure in config["measures"]), lines
        settings = Run(config).zoo_model(zoo, threat, model).checkpoint_settings()
        require_model(case, settings, plain)


def require_data(config, dataset, plain):
    """The dataset of the written file holds the images and labels of plain code."""
    entry = config["datasets"][dataset]
    if entry["source"] == "labels":
        labels, _, _ = read_labels_file(entry["path"], classes=entry["classes"])
        assert np.array_equal(labels, plain.labels)
        return
    images = open_images(Run(config).datasets[dataset].image_settings(), entry["path"], classes=entry["classes"])
    pixels = np.concatenate(list(images.batches(64)))
    stored = Counter(zip(as_bytes(pixels), images.labels.tolist(), strict=True))
    assert stored == Counter(zip(as_bytes(plain.images), plain.labels.tolist(), strict=True))


def require_model(case, settings, plain):
    """The model of the written file, opened as the steps open it, answers as plain code."""
    manifest = describe_checkpoint(settings, identity=dict.fromkeys(("dataset", "threat", "model"), "x"), record=False)
    listed = {Path(file["path"]).name for file in manifest["files"]}
    assert set(case.files) <= listed
    shape, classes = plain.images.shape[1:], plain.logits.shape[1]
    classifier = open_classifier(manifest, image_shape=shape, classes=classes)
    logits = classifier.logits(plain.images)
    assert logits.shape == plain.logits.shape
    assert np.abs(logits - plain.logits).max() <= case.within
    assert float((logits.argmax(axis=1) == plain.labels).mean()) == plain.accuracy


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_an_input_that_cannot_work_is_refused_by_file_and_remedy(case, real, folder, capsys):
    require_refused(case, real, folder, capsys)


@pytest.mark.parametrize("case", BY_THE_WHOLE_COMMAND, ids=name_of)
def test_the_process_that_looks_refuses_the_same(case, real, folder, capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(gfscore.__file__).parents[1]))
    require_refused(case, real, folder, capsys)


def require_refused(case, real, folder, capsys):
    """The command ends with status 3, says each text of the case, and writes nothing."""
    case.write(real, folder)
    before = files_below(folder)
    status, _, errors = audited(case, capsys)
    assert status == ERROR
    assert errors.count("error:") == 1
    assert "ended by itself" not in errors
    missing = [text for text in case.says if text not in errors]
    assert not missing, errors
    assert files_below(folder) == before
