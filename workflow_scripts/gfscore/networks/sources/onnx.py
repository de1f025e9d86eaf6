"""An exported network, run by onnxruntime on the CPU (source `onnx`): logits only, no gradients."""

from pathlib import Path

import numpy as np

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier, classes_given, first_line
from gfscore.networks.preprocessing import description, preprocess


def open_classifier(settings, path, *, image_shape, classes, threads):
    """Classifier in an ONNX file with one image input (n, C, H, W) float32; measures that need gradients cannot use it.

    `settings`: `image_shape` (C, H, W), `output` (name of the output that holds the logits, None where there is one)
    and the preprocessing (see gfscore.networks.preprocessing). A file made for a fixed number of images is given
    blocks of that size, the last one filled up.
    `threads` are those of one operator. Raises InputError, naming file and remedy,
    for a damaged file, weights kept in other files, and inputs or outputs of another kind.
    """
    del image_shape, classes
    session = _session(path, threads)
    shape = tuple(settings["image_shape"])
    name, fixed = _input_of(session, shape, path)
    output = _output_of(session, settings["output"], path)

    def run(images):
        images = preprocess(images, settings, where=path)
        size = fixed or max(1, len(images))
        blocks = []
        for start in range(0, len(images), size):
            block = images[start : start + size]
            padding = np.zeros((size - len(block) if fixed else 0, *shape), dtype=np.float32)
            blocks.append(session.run([output], {name: np.concatenate([block, padding])})[0][: len(block)])
        return np.concatenate(blocks).astype(np.float32)

    return Classifier(
        architecture="ONNX graph",
        image_shape=shape,
        classes=classes_given(run, shape, where=path),
        network=None,
        run=run,
        preprocessing=description(settings),
    )


def _session(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    content = Path(path).read_bytes()
    try:
        # From memory, not from the path: weights in other files, which no digest covers, are then out of reach.
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # onnxruntime raises a dozen types without a common base of its own.
    except Exception as error:
        raise InputError(
            f"{path}: onnxruntime {onnxruntime.__version__} cannot open it ({first_line(error)}); export it again as "
            "one file with all weights inside"
        ) from error


def _input_of(session, shape, path):
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise InputError(
            f"{path}: has inputs {', '.join(i.name for i in inputs) or 'none'}; export it with one, the image"
        )
    (only,) = inputs
    if only.type != "tensor(float)":
        raise InputError(f"{path}: input {only.name!r} is {only.type}; export it for float32 images (n, C, H, W)")
    # Symbolic dimensions are text or None: any size goes.
    fits = len(only.shape) == 4 and all(
        not isinstance(has, int) or has == needs for has, needs in zip(only.shape[1:], shape, strict=True)
    )
    if not fits:
        raise InputError(
            f"{path}: input {only.name!r} has shape {only.shape}, but image_shape {list(shape)} needs (n, C, H, W); "
            "correct image_shape, or export the model for channels first"
        )
    return only.name, only.shape[0] if isinstance(only.shape[0], int) else None


def _output_of(session, wanted, path):
    names = [output.name for output in session.get_outputs()]
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        raise InputError(f"{path}: output {wanted!r} is not one of {', '.join(names)}; name the logits under `output`")
    return wanted
