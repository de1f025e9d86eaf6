"""Classifiers of every source, and their inference from images to logits.

- What the Snakefile reads: declarations of sources (`sources`, `model_source`), settings of inference and the choice of
  a device (`device_choice`, `installed_gpus`), RobustBench's leaderboard, the files of ONNX models and architectures.
- Files: download, digests and manifests (`checkpoint_files`), weights in them (`checkpoints`), ONNX (`onnx_content`,
  `onnx_graphs`, `onnx_sessions`).
- Networks: by name (`architectures`, `callables`), wrapped from pixels to logits (`preprocessing`, `wrappers`,
  `outputs`), in other number types (`number_types`).
- Classifiers: the interface of all sources (`classifier`), opened by one module for each source.
- Inference: devices, arithmetic (`precision`), batches, logits and their checks (`inference`, `batch_invariance`), and
  the counts of passes.
"""
