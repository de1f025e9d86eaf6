# No rules: functions from the wildcards of a job to what the plan of the run says of its audit, dataset, model, mapper
# or measure, and what a job depends on besides its data.


def of_audit(lookup):
    """Function from an audit's name to what a lookup returns of the PlannedAudit."""
    return lambda wildcards: lookup(plan.audits[wildcards.audit])


def of_run(lookup):
    """What a lookup returns of every audit named in `run`, in one list without repetitions."""
    items = []
    for audit in plan.selected:
        items += lookup(audit)
    return list(dict.fromkeys(items))


def of_dataset(lookup):
    """Function from a dataset's name to what a lookup returns of the PlannedDataset."""
    return lambda wildcards: lookup(plan.datasets[wildcards.dataset])


def of_model(lookup):
    """Function from "dataset/threat/model", in one wildcard or in three, to what a lookup returns of the PlannedModel."""

    def value(wildcards):
        if wildcards.get("subject"):
            return lookup(plan.model(*wildcards.subject.split("/")))
        return lookup(plan.model(wildcards.dataset, wildcards.threat, wildcards.model))

    return value


def of_zoo_model(lookup):
    """Function from zoo, threat and model to what a lookup returns of the PlannedModel."""
    return lambda wildcards: lookup(plan.zoo_model(wildcards.zoo, wildcards.threat, wildcards.model))


def of_mapper(lookup):
    """Function from a mapper's name to what a lookup returns of the PlannedMapper."""
    return lambda wildcards: lookup(plan.mappers[wildcards.mapper])


def of_measure(lookup):
    """Function from a measure's name to what a lookup returns of the NamedMeasure."""
    return lambda wildcards: lookup(plan.measures[wildcards.measure])


def of_choice(lookup):
    """Function from the name of a choice of offsets to what a lookup returns of the PlannedOffsets."""
    return lambda wildcards: lookup(plan.offset_choices[wildcards.choice])


def strength_of_offsets(wildcards, input):
    """Share of its offsets that a job's model adds to its logits; None for a model without.

    A function of the inputs, which Snakemake does not compare: `with_offsets` says it of models with offsets alone.
    """
    if "offsets" not in input.keys():
        return None
    return plan.model(wildcards.dataset, wildcards.threat, wildcards.model).entry["strength"]


def of_figure(lookup):
    """Function from a figure of an audit to what a lookup of gfscore.show.run_output says of it."""
    return lambda wildcards: lookup(wildcards.figure, plan.audits[wildcards.audit].measures)


def batch_size(wildcards, input):
    """Images at a time, a function of the inputs, which Snakemake does not compare: it changes last bits at most."""
    return config["inference"]["batch_size"]


def measure_settings(wildcards):
    """Settings of the measure that a job computes, as plain values."""
    return config["measures"][wildcards.measure]


@cache
def files_of_classifier(dataset, threat, model):
    """Inputs of every job in which a classifier classifies images; looked for once, however many measures there are."""
    return plan.classifier_files(plan.model(dataset, threat, model))


def classifier_files(wildcards):
    """The same by the wildcards of a job."""
    return files_of_classifier(wildcards.dataset, wildcards.threat, wildcards.model)


def by_device(device_of, *, cpu, cuda):
    """Function from the wildcards of a job to the value for its device.

    `device_of` returns the device by the wildcards; a value may be a function of the wildcards itself.
    """

    def value(wildcards):
        chosen = cpu if device_of(wildcards) == "cpu" else cuda
        return chosen(wildcards) if callable(chosen) else chosen

    return value


def by_training(*, probe, cpu, cuda):
    """Function from a model of a zoo to the value for a probe, or else for the device of its training."""
    by_device_of_training = by_device(device_of_training, cpu=cpu, cuda=cuda)

    def value(wildcards):
        if plan.zoo_model(wildcards.zoo, wildcards.threat, wildcards.model).source.name == "probe":
            return probe(wildcards) if callable(probe) else probe
        return by_device_of_training(wildcards)

    return value


# ---- what the steps depend on besides their data ----


def code(rule_name):
    """Script of a cheap step and the modules that it imports; an edit of one re-runs what uses it, no more.

    Of the kinds of measures, which no module imports by name: of a job about one measure all that its kind consists of;
    of one about an audit, or the whole run, the declarations of its measures. Of the sources of attributes, which none
    imports either: of a job about a dataset the one of its entry.
    """

    def files(wildcards):
        if wildcards.get("measure"):
            modules = modules_of_measure(plan.measures[wildcards.measure])
        elif wildcards.get("audit"):
            modules = declaring_modules(plan.audits[wildcards.audit].measures.values())
        elif wildcards.get("dataset"):
            modules = plan.datasets[wildcards.dataset].attribute_modules()
        else:
            modules = declaring_modules(measure for audit in plan.selected for measure in audit.measures.values())
        return code_of(rule_name, modules)

    return files


@cache
def code_of(rule_name, modules):
    """The same, with more modules of the package, a tuple of names."""
    return [in_workflow(path) for path in sources_of(SCRIPTS / f"{rule_name}.py", *modules)]


@cache
def version(rule_name):
    """Version of an expensive rule, which does not re-run on every edit of its code, and of torch."""
    return with_torch(yaml.safe_load((SCRIPTS / "versions.yaml").read_text())[rule_name])


def version_of_measure(wildcards):
    """The same of the measure that a job computes, whose kind declares it."""
    return with_torch(plan.measures[wildcards.measure].kind.version_with(config["inference"]["search"]))


def version_of_choice(wildcards):
    """The same of a choice of offsets: of its own step, and of the measure whose attacks it uses."""
    kind = plan.offset_choices[wildcards.choice].measure.kind
    attacks = kind.version_with(config["inference"]["search"])
    return f"{version('choose_offsets')}, attacks {attacks}"


def with_offsets(version_of):
    """Version that a function of the wildcards returns, with the strength of the offsets of a model that has some."""

    def value(wildcards):
        model = plan.model(wildcards.dataset, wildcards.threat, wildcards.model)
        if model.offsets is None:
            return version_of(wildcards)
        return f"{version_of(wildcards)}, {model.entry['strength']} x offsets"

    return value


@cache
def with_torch(version_of_values):
    """A version, and that of torch."""
    torch = next(line for line in (ROOT / "requirements.lock").read_text().split() if line.startswith("torch=="))
    return f"{version_of_values}, {torch}"


# Costs are other ones at every run: only the page, which shows them, reads them.
AUDIT_FILES = {
    name: f"results/audits/{{audit}}/{name}.parquet" for name in table_names.TABLES_OF_AUDIT if name != "costs"
}
AUDIT_FILES |= {f"{name}_json": f"results/audits/{{audit}}/{name}.json" for name in ("calibration", "comparison")}
AUDIT_FILES |= {"selection": "results/audits/{audit}/models.json"}
