# No rules: what a run does with the results of earlier ones before its first job, and after one that failed.
#
#   require_known_settings   results that nobody knows the settings of are no part of an audit with others
#   require_pinned_data    data that are there have the digests that the configuration pins by now
#   set_aside_judgements   verdicts that are made anew go to previous/, with pages and exports of them
#   keep_manifests, restore_manifests   a refused checkpoint or dataset costs nothing of the one that stood there

from snakemake.io import IOFile

JUDGEMENTS = {"judge_audit", "build_report", "build_index"}
READERS = {"fetch_checkpoint", "fetch_dataset"}


def of_unknown_settings(audit):
    """Whether the configuration of an audit is another one by now, and Snakemake's records of its run are gone."""
    path = f"{plan.audits[audit].folder}/config.yaml"
    if not Path(path).is_file() or workflow.persistence.metadata(IOFile(path)) is not None:
        return False
    return holds_other_values(path, rendered(resolution, audit))


def asked_for_anew(wildcards):
    """No input: lets a run that would find nothing to do write the configuration of an audit of unknown settings."""
    if workflow.is_main_process and of_unknown_settings(wildcards.audit):
        workflow.dag.forcefiles.add(f"{plan.audits[wildcards.audit].folder}/config.yaml")
    return []


def require_known_settings():
    """Refuse an audit of unknown settings: which of its results fit those of now, nobody can say."""
    if workflow.dag_settings.forceall:
        return
    for job in workflow.dag.needrun_jobs():
        if job.rule.name == "write_configuration" and of_unknown_settings(job.wildcards.audit):
            raise WorkflowError(
                f"{job.output[0]}: states other settings than the configuration by now, and Snakemake's records of what "
                "was made with which (.snakemake/metadata) are not there; copy .snakemake along with results, restore "
                "the settings, or add --forceall to make everything again (make: ARGS=--forceall)"
            )


def require_pinned_data():
    """Refuse data that an earlier run fetched and that have another digest than is pinned; fetched anew, their step does."""
    fetched_anew = set()
    for job in workflow.dag.needrun_jobs():
        fetched_anew.update(job.output if job.rule.name == "fetch_dataset" else ())
    faults = other_than_pinned(plan.selected, fetched_anew=fetched_anew)
    if faults:
        raise WorkflowError("\n".join(faults))


def set_aside_judgements():
    """Move what stands on verdicts that this run makes anew into previous/: after a failed run it would look current.

    Pages and exports too that this run does not make, as where nothing but `audit` or `gate` is asked for.
    """
    outdated = set()
    for job in workflow.dag.needrun_jobs():
        if job.rule.name in JUDGEMENTS:
            outdated.update(map(Path, job.output))
        if job.rule.name == "judge_audit":
            folder = Path(job.output.verdict).parent
            outdated.update([folder / "report.html", folder / "exports", Path("results/index.html")])
    for path in filter(Path.exists, outdated):
        previous = path.parent / "previous" / path.name
        previous.parent.mkdir(exist_ok=True)
        if previous.is_dir():
            shutil.rmtree(previous)
        path.replace(previous)


kept_manifests = []


def keep_manifests():
    """Note what accepted files are known by, where this run looks at others in their place."""
    for job in workflow.dag.needrun_jobs():
        for path in job.output if job.rule.name in READERS else ():
            if Path(path).is_file():
                known = workflow.persistence.metadata(path)
                kept_manifests.append((path, Path(path).read_bytes(), Path(path).stat().st_mtime_ns, known))


def restore_manifests():
    """Put back those that are gone since the other file was refused: with the old one back, nothing is made again."""
    for path, content, changed, known in kept_manifests:
        if not Path(path).exists():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
            os.utime(path, ns=(changed, changed))
            # As it was recorded for the old file, so that the refused one is looked at again where it stays.
            if known is not None:
                workflow.persistence._write_record(workflow.persistence._get_key(path), known)
