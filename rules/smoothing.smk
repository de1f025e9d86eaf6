# Certified radii of the classifier that votes over noisy copies of its input.
#
#   in   results/datasets/<dataset>.json, checkpoint and manifest of the model
#   out  results/samples/<measure>/<dataset>/<threat>/<model>.parquet
#
#   certify_model   kind certified
#
# Models with source samples bring radii that somebody else certified: see imports.smk.


ruleorder: import_samples > certify_model


rule certify_model:
    input:
        unpack(of_model(layout.classifier_files)),
    output:
        samples=f"results/samples/{{measure}}/{MODEL}.parquet",
    log:
        f"results/logs/certify_model/{{measure}}/{MODEL}.log",
    wildcard_constraints:
        measure=plan.names_of_kind(config, "certified"),
    conda:
        "../envs/torch.yaml"
    threads: cores_of_model
    resources:
        gpu=1,
        mem_mb=by_attempt(4000),
        runtime=by_attempt(1440),
    params:
        version=version("certify_model"),
        batch_size=config["inference"]["batch_size"],
        settings=of_measure,
        progress=f"results/progress/certify_model/{{measure}}/{MODEL}",
    script:
        "../workflow_scripts/certify_model.py"
