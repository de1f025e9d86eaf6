# A classifier meets data: its logits, and one number per sample and measure that shows it images.
#
#   in   results/datasets/<dataset>.{json,parquet}, checkpoint and manifest of the model
#   out  results/logits/<dataset>/<threat>/<model>.parquet                sample_id, label, logits
#        results/samples/<measure>/<dataset>/<threat>/<model>.parquet     values per sample
#        results/offsets/<dataset>/<threat>/<model>/<choice>.json         class offsets, chosen on this dataset
#
#   extract_logits  forward passes, on the GPU where there is one
#   choose_offsets  numbers added to the logits of a model, under attacks that see them, on half of the data
#   measure_model   every kind of measure that shows images to a network: one job per (model, dataset, measure)
#   import_samples  in its place, for models with source samples: values per sample that somebody brings
#
# Measures from logits are made of all models of an audit at once: see audit.smk. What a kind takes stands in its
# declaration, gfscore/measures/<kind>: memory, time, GPUs, and the version that is raised when its values change.
#
# A killed job goes on with the batch that it was in: finished ones wait in results/progress/.
#
# The check of the logits is no input of measure_model, nor of other steps that show images to a classifier: an edit of
# cheap code would run them all again (as `ancient` it would hide from Snakemake that a checkpoint has changed).


ruleorder: import_samples > measure_model


rule choose_offsets:
    input:
        unpack(classifier_files),
    output:
        offsets=f"results/offsets/{MODEL}/{{choice}}.json",
    log:
        f"results/logs/choose_offsets/{MODEL}/{{choice}}.log",
    wildcard_constraints:
        choice=one_of(plan.offset_choices),
    # What is measured with the offsets waits for them.
    priority: 1
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=gpus_of_model,
        gpu_percent=percent_of_gpu,
        device=device_of_model,
        search=config["inference"]["search"],
        mem_mb=by_attempt(of_choice(lambda offsets: offsets.measure.kind.mem_mb)),
        # Each round attacks half of the data at most.
        runtime=by_attempt(of_choice(lambda offsets: offsets.measure.kind.runtime * offsets.settings.rounds // 2)),
    params:
        version=version_of_choice,
        batch_size=batch_size,
        settings=of_choice(lambda offsets: offsets.settings.model_dump()),
        measure=of_choice(lambda offsets: offsets.measure.name),
        attack=of_choice(lambda offsets: offsets.measure.entry()),
        progress=f"results/progress/choose_offsets/{MODEL}/{{choice}}",
    script:
        "../workflow_scripts/choose_offsets.py"


rule extract_logits:
    input:
        unpack(classifier_files),
    output:
        logits=f"results/logits/{MODEL}.parquet",
    log:
        f"results/logs/extract_logits/{MODEL}.log",
    # Before any attack: the check of the logits may stop the run.
    priority: 1
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=gpus_of_model,
        gpu_percent=percent_of_gpu,
        device=device_of_model,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(60),
    params:
        version=with_offsets(lambda wildcards: version("extract_logits")),
        strength=strength_of_offsets,
        precision=config["inference"]["precision"],
    script:
        "../workflow_scripts/extract_logits.py"


rule measure_model:
    input:
        unpack(classifier_files),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/measure_model/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.network_measures(),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_measure
    resources:
        gpu=gpus_of_model,
        gpu_percent=percent_of_gpu,
        device=device_of_model,
        # No parameter: a device that changes is no reason to measure again. What is set explicitly is in the version.
        search=config["inference"]["search"],
        mem_mb=by_attempt(of_measure(lambda measure: measure.kind.mem_mb)),
        runtime=by_attempt(of_measure(lambda measure: measure.kind.runtime)),
    params:
        version=with_offsets(version_of_measure),
        strength=strength_of_offsets,
        batch_size=batch_size,
        settings=measure_settings,
        progress=f"results/progress/measure_model/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/measure_model.py"


rule import_samples:
    input:
        code=code("import_samples"),
        file=of_model(lambda model: user_files.present(model.path)),
        manifest=of_model(lambda model: plan.datasets[model.name.dataset].manifest),
        samples=of_model(lambda model: plan.datasets[model.name.dataset].samples),
    output:
        samples="results/samples/{measure}/{subject}.parquet",
    log:
        "results/logs/import_samples/{measure}/{subject}.log",
    wildcard_constraints:
        subject=plan.models_from("samples"),
    group:
        submitted_with("model")
    conda:
        "../envs/analysis.yaml"
    params:
        model=of_model(lambda model: model.name.columns()),
        path=of_model(lambda model: model.path),
        measure=lambda wildcards: wildcards.measure,
        kind=of_measure(lambda measure: measure.kind.name),
        largest_radius=lambda wildcards: measure_settings(wildcards).get("largest_radius"),
        state=of_model(lambda model: user_files.digest(model.path)),
    script:
        "../workflow_scripts/import_samples.py"
