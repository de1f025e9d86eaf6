# No rules: what config.yaml says about a job, and what a job depends on, as functions of its wildcards.


def of_audit(lookup, **settings):
    """Function from an audit to what a lookup of gfscore.workflow.plan or gfscore.workflow.layout says about it."""
    return lambda wildcards: lookup(config, wildcards.audit, **settings)


def of_figure(lookup):
    """Function from a figure of an audit to what a lookup of gfscore.show.figure_names says about it."""
    return lambda wildcards: lookup(wildcards.figure, plan.measures_of(config, wildcards.audit))


def of_dataset(lookup):
    """Function from a dataset to what a lookup says about it."""
    return lambda wildcards: lookup(config, wildcards.dataset)


def of_entry(key):
    """Function from a dataset to one of its settings."""
    return lambda wildcards: config["datasets"][wildcards.dataset][key]


def of_audited(key):
    """Function from an audit to one setting of the dataset that it evaluates."""
    return lambda wildcards: config["datasets"][config["audits"][wildcards.audit]["dataset"]][key]


@cache
def files_of_classifier(dataset, threat, model):
    """What every job needs that shows images to a classifier; looked for once, however many measures there are."""
    return layout.classifier_files(config, dataset, threat, model)


def classifier_files(wildcards):
    """The same by the names of a job's inputs."""
    return files_of_classifier(wildcards.dataset, wildcards.threat, wildcards.model)


def of_measure(wildcards):
    """Settings of the measure that a job computes."""
    return config["measures"][wildcards.measure]


def of_kind(name):
    """Function from a measure to what its kind declares under a name."""
    return lambda wildcards: getattr(kind_of(of_measure(wildcards)), name)


def of_subject(key):
    """Function from a subject "dataset/threat/model" to one setting of the model."""
    return lambda wildcards: plan.entry_of(config, **model_of_subject(wildcards))[key]


def model_of_subject(wildcards):
    """Dataset, threat and model of a subject "dataset/threat/model"."""
    return dict(zip(("dataset", "threat", "model"), wildcards.subject.split("/"), strict=True))


def of_zoo(key):
    """Function from a classifier of a zoo to one of its settings."""
    return lambda wildcards: config["models"][wildcards.zoo][wildcards.threat][wildcards.model][key]


def of_probe(pattern):
    """Function from a probe "zoo/threat/model" to a file name made of its settings."""
    return lambda wildcards: pattern.format(**plan.zoo_entry_of(config, *wildcards.probe.split("/")))


def by_device(*, cpu, cuda, of=of_zoo("training")):
    """Function from a classifier of a zoo to the value for the device that it is trained on, or to what that says.

    `of` looks up the settings that name the device.
    """

    def value(wildcards):
        chosen = {"cpu": cpu, "cuda": cuda}[of(wildcards)["device"]]
        return chosen(wildcards) if callable(chosen) else chosen

    return value


def by_mapper_device(**values):
    """The same for a mapper."""
    return by_device(**values, of=lambda wildcards: config["mappers"][wildcards.mapper])


def by_generator_device(**values):
    """The same for a user's generator of a dataset."""
    return by_device(**values, of=lambda wildcards: config["datasets"][wildcards.dataset]["generator"])


def of_run(lookup):
    """What a lookup says about every audit named in `run`, in one list without repetitions."""
    return list(dict.fromkeys(item for audit in config["run"] for item in lookup(config, audit)))


def results_of_run(name):
    """One result file of every audit named in `run`."""
    return [f"results/audits/{audit}/{name}" for audit in config["run"]]


# ---- what the steps depend on besides their data ----


def code(rule_name):
    """Script of a cheap step and the modules it imports; an edit of one re-runs what uses it, no more.

    Of the kinds of measures, which no module imports by name, those that a job is about.
    """
    return lambda wildcards: code_of(rule_name, modules_of_kinds(config, **wildcards))


@cache
def code_of(rule_name, modules):
    """The same, with more modules of the package, a tuple of names."""
    return [str(path.relative_to(ROOT)) for path in sources_of(SCRIPTS / f"{rule_name}.py", *modules)]


@cache
def version(rule_name):
    """Version of an expensive rule, which does not re-run on every edit of its code, and of torch."""
    return with_torch(yaml.safe_load((SCRIPTS / "versions.yaml").read_text())[rule_name])


def version_of_measure(wildcards):
    """The same of the measure that a job computes, whose kind declares it."""
    return with_torch(kind_of(of_measure(wildcards)).version_with(config["inference"]["search"]))


@cache
def with_torch(own):
    """A version, and that of torch."""
    torch = next(line for line in (ROOT / "requirements.lock").read_text().split() if line.startswith("torch=="))
    return f"{own}, {torch}"


def state_of(file_of, state=user_files.state):
    """What tells a user's file from another in its place, which may be older than the outputs of the first one."""
    # Snakemake does not look at parameters that are made of a job's input, so this is made of wildcards.
    return lambda wildcards: state(file_of(wildcards))


# Costs are other ones at every run: only the page, which shows them, reads them.
AUDIT_FILES = {
    name: f"results/audits/{{audit}}/{name}.parquet" for name in table_names.TABLES_OF_AUDIT if name != "costs"
}
AUDIT_FILES |= {f"{name}_json": f"results/audits/{{audit}}/{name}.json" for name in ("calibration", "comparison")}
AUDIT_FILES |= {"selection": "results/audits/{audit}/models.json"}
