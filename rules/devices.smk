# No rules: where a job that shows images to a classifier runs, and what it takes of the GPUs of this machine.

from gfscore.networks.device_choice import WHOLE, Network
from gfscore.networks.installed_gpus import InstalledGpus, installed_gpus
from gfscore.workflow import job_devices

# A login node knows nothing of the GPUs of the nodes, and a node must ask for what the login node asked for.
on_cluster = workflow.nodes is not None or workflow.remote_exec
gpus = InstalledGpus() if on_cluster or not workflow.is_main_process else installed_gpus()
gpu_mistakes = [] if on_cluster or not workflow.is_main_process else job_devices.gpu_mistakes(plan, gpus)
for words in gpu_mistakes or filter(None, [gpus.reason]):
    logger.warning(words)
if gpus.usable and "gpu_percent" not in workflow.global_resources:
    workflow.register_resource("gpu_percent", WHOLE * len(gpus.usable))


def job_device(wildcards, input):
    """Device of a job that shows images to a classifier, and its part of a GPU; FileNotFoundError before its inputs."""
    asked = config["inference"]["device"]
    model = plan.model(wildcards.dataset, wildcards.threat, wildcards.model)
    if asked == "cpu" or model.entry.get("gradients") is False:
        # A file without gradients runs outside of torch, which has the GPU.
        return job_devices.JobDevice("cpu")
    if on_cluster:
        return job_devices.JobDevice(asked)
    if not gpus.usable:
        return job_devices.without_gpu(asked)
    return device_of_files(
        input.dataset,
        input.model,
        input.get("checkpoint") or None,
        wildcards.get("measure"),
        wildcards.get("mapper"),
        wildcards.get("choice"),
    )


@cache
def device_of_files(path_to_dataset, path_to_model, path_to_checkpoint, measure, mapper, choice):
    """The same by the files of its dataset and model, and by what is computed: a measure, a projection, offsets, logits."""
    dataset = job_devices.RecordedDataset.read(path_to_dataset)
    network = Network(job_devices.recorded_size(path_to_model, path_to_checkpoint), dataset.image_shape)
    batch_size, counts = config["inference"]["batch_size"], (dataset.samples, dataset.classes)
    if measure:
        planned = job_devices.planned_measure(plan.measures[measure], *counts, batch_size)
    elif choice:
        planned = job_devices.planned_offsets(plan.offset_choices[choice], *counts, batch_size)
    elif mapper:
        planned = job_devices.planned_projection(plan.mappers[mapper].settings, *counts)
    else:
        planned = job_devices.planned_logits(dataset.samples)
    return job_devices.choose(network, planned, device=config["inference"]["device"], installed=gpus)


def device_of_model(wildcards, input):
    """Device of a job, for its script."""
    return job_device(wildcards, input).device


def percent_of_gpu(wildcards, input):
    """Percentage of one GPU of this machine that a job takes, 0 for none; a cluster gives a job a whole one."""
    return job_device(wildcards, input).gpu_percent


def gpus_of_model(wildcards, input):
    """GPUs that a job asks a cluster for; none where it runs on the CPU."""
    return 0 if job_device(wildcards, input).device == "cpu" else 1


def cores_beside_gpu(wildcards):
    """Threads of a job that computes on a GPU: a few that feed it; on a cluster those that go with a GPU."""
    cores = all_local_cores(wildcards)
    return cores if on_cluster else min(job_devices.FEEDING_CORES, cores)


def cores_of_model(wildcards, input):
    """Threads of a job that shows images to a classifier: what its arithmetic takes, or those beside a GPU."""
    if on_cluster:
        return all_local_cores(wildcards)
    try:
        if job_device(wildcards, input).gpu_percent:
            return cores_beside_gpu(wildcards)
    except FileNotFoundError:
        # Asked again when the inputs are there.
        pass
    threads = plan.model(wildcards.dataset, wildcards.threat, wildcards.model).threads()
    return min(threads, all_local_cores(wildcards))


def cores_of_measure(wildcards, input):
    """Threads of a job of a measure: those of its model, and more where its kind works on several samples at once."""
    cores = cores_of_model(wildcards, input)
    try:
        useful = job_devices.useful_cores(plan.measures[wildcards.measure], input.dataset)
    except FileNotFoundError:
        # Asked again when the inputs are there.
        return cores
    return min(max(cores, useful), all_local_cores(wildcards))


def device_of_training(wildcards):
    """Device that a training names; of a probe, which has none, that on which its backbone classifies."""
    model = plan.zoo_model(wildcards.zoo, wildcards.threat, wildcards.model)
    if "training" in model.entry:
        return model.entry["training"]["device"]
    asked = config["inference"]["device"]
    return asked if on_cluster or gpus.usable else job_devices.without_gpu(asked).device


def whole_gpu(wildcards):
    """Percentage of one GPU of this machine that a training takes: all of it."""
    return WHOLE if gpus.usable else 0
