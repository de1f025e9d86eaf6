# The embedded zoo and generator: classifiers and samples that the workflow makes itself, so that it needs no download.
#
#   in   results/datasets/<train_on>.json, results/datasets/<evaluate_on>.json
#        results/checkpoints/<zoo>/<threat>/<model>.json      the backbone of a probe
#   out  results/trained/<zoo>/<threat>/<model>.safetensors   weights
#        results/trained/<zoo>/<threat>/<model>.json          digest, architecture, clean and PGD accuracy
#        results/generated/<dataset>.npz, .json               samples, and the generator's label-error rates or file
#
#   train_model    one classifier by one training method, one thread: more threads change the weights; on a GPU where the
#                  model's entry says so; or a probe, a linear classifier of the features of somebody else's backbone
#   draw_samples   draws from a class-conditional generator that it fits, or from one that a file holds, on a GPU where
#                  the dataset's entry says so


function_that_fits = of_zoo_model(lambda model: model.source.fitted_by)
function_that_draws = of_dataset(lambda dataset: dataset.source.drawn_by)
device_of_generator = of_dataset(lambda dataset: dataset.generator.device if dataset.generator else "cpu")


rule train_model:
    input:
        unpack(of_zoo_model(PlannedModel.training_files)),
    output:
        checkpoint=f"results/trained/{ZOO_MODEL}.safetensors",
        manifest=f"results/trained/{ZOO_MODEL}.json",
    log:
        f"results/logs/train_model/{ZOO_MODEL}.log",
    conda:
        "../envs/torch.yaml"
    # torch takes one thread for a training in either case
    threads: by_training(probe=all_local_cores, cpu=1, cuda=cores_beside_gpu)
    resources:
        gpu=by_device(device_of_training, cpu=0, cuda=1),
        gpu_percent=by_device(device_of_training, cpu=0, cuda=whole_gpu),
        device=device_of_training,
        # up to 2 GB of training images are held in main memory as float32, beside the libraries of CUDA
        mem_mb=by_attempt(by_training(probe=8000, cpu=2000, cuda=8000)),
        runtime=by_attempt(by_training(probe=120, cpu=60, cuda=720)),
    params:
        version=version("train_model"),
        # A function of the inputs, because a function that moves gives the same weights.
        fitted_by=lambda wildcards, input: function_that_fits(wildcards),
        identity=of_zoo_model(lambda model: model.name.columns()),
        settings=of_zoo_model(lambda model: model.entry.get("training")),
        attack=of_zoo_model(lambda model: model.entry.get("attack")),
        progress=f"results/progress/train_model/{ZOO_MODEL}",
    script:
        "../workflow_scripts/train_model.py"


rule draw_samples:
    input:
        train=of_dataset(PlannedDataset.generator_training),
        generator=reading(of_dataset(PlannedDataset.generator_files), "results/generated/{dataset}.json"),
    output:
        images="results/generated/{dataset}.npz",
        manifest="results/generated/{dataset}.json",
    log:
        "results/logs/draw_samples/{dataset}.log",
    wildcard_constraints:
        dataset=plan.drawn_datasets(),
    conda:
        "../envs/torch.yaml"
    # more threads change the last digits of pixels
    threads: 1
    resources:
        gpu=by_device(device_of_generator, cpu=0, cuda=1),
        gpu_percent=by_device(device_of_generator, cpu=0, cuda=whole_gpu),
        mem_mb=by_attempt(8000),
        runtime=by_attempt(240),
    params:
        version=of_dataset(lambda dataset: with_torch(dataset.source.version)),
        # A function of the inputs, because a function that moves draws the same samples.
        drawn_by=lambda wildcards, input: function_that_draws(wildcards),
        classes=of_dataset(lambda dataset: dataset.entry["classes"]),
        settings=of_dataset(lambda dataset: dataset.entry["generator"]),
        state=of_dataset(PlannedDataset.generator_state),
    script:
        "../workflow_scripts/draw_samples.py"
