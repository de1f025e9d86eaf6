# Latent dimensions that a classifier's predictions depend on, and how far they tolerate a move.
#
#   in   results/datasets/{<train_on>,<evaluate_on>,<dataset>}.json, results/attributes/<dataset>.parquet (conditional)
#        checkpoint and manifest of the model
#   out  results/mappers/<mapper>.{safetensors,json,npz}                         weights, manifest, pictures
#        results/projections/<mapper>/<dataset>/<threat>/<model>.parquet         boundaries per sample and dimension
#
#   train_mapper            one thread: more threads change the weights; an interrupted training goes on
#   project_attributes      one job per model: images are decoded again for each, because which ones it needs depends on
#                           its predictions, and all of them would fill gigabytes at the sizes where decoding is slow

device_of_mapper = of_mapper(lambda mapper: mapper.entry["device"])


rule train_mapper:
    input:
        unpack(of_mapper(PlannedMapper.inputs)),
    output:
        weights="results/mappers/{mapper}.safetensors",
        manifest="results/mappers/{mapper}.json",
        pictures="results/mappers/{mapper}.npz",
    log:
        "results/logs/train_mapper/{mapper}.log",
    conda:
        "../envs/torch.yaml"
    # as in train_model
    threads: by_device(device_of_mapper, cpu=1, cuda=cores_beside_gpu)
    # cuda: 6 GB of images to train on (10,000 of 224 x 224, held once), 2 GB of those that are measured, 3 GB of CUDA
    resources:
        gpu=by_device(device_of_mapper, cpu=0, cuda=1),
        gpu_percent=by_device(device_of_mapper, cpu=0, cuda=whole_gpu),
        mem_mb=by_attempt(by_device(device_of_mapper, cpu=2000, cuda=16000)),
        runtime=by_attempt(by_device(device_of_mapper, cpu=60, cuda=720)),
    params:
        version=version("train_mapper"),
        settings=of_mapper(PlannedMapper.training_settings),
        progress="results/progress/train_mapper/{mapper}",
    script:
        "../workflow_scripts/train_mapper.py"


rule project_attributes:
    input:
        unpack(classifier_files),
        weights="results/mappers/{mapper}.safetensors",
        mapper="results/mappers/{mapper}.json",
        attributes=lambda wildcards: plan.mappers[wildcards.mapper].attributes_of(wildcards.dataset),
    output:
        samples=f"results/projections/{{mapper}}/{MODEL}.parquet",
    log:
        f"results/logs/project_attributes/{{mapper}}/{MODEL}.log",
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=gpus_of_model,
        gpu_percent=percent_of_gpu,
        device=device_of_model,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(240),
    params:
        version=with_offsets(lambda wildcards: version("project_attributes")),
        strength=strength_of_offsets,
        batch_size=batch_size,
        settings=of_mapper(lambda mapper: mapper.entry["search"]),
        progress=f"results/progress/project_attributes/{{mapper}}/{MODEL}",
    script:
        "../workflow_scripts/project_attributes.py"
