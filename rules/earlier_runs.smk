# No rules: what a run does with the results of earlier ones before its first job, and after one that failed.
#
#   require_pinned_data    data that are there have the digests that the configuration pins by now
#   set_aside_judgements   verdicts and pages that are made anew go to previous/
#   keep_manifests, restore_manifests   a refused checkpoint or dataset costs nothing of the one that stood there

JUDGEMENTS = {"judge_audit", "build_report", "build_index"}
READERS = {"fetch_checkpoint", "fetch_dataset"}


def require_pinned_data():
    """Refuse data that an earlier run fetched and that have another digest than is pinned; fetched anew, their step does."""
    fetched_anew = set()
    for job in workflow.dag.needrun_jobs():
        fetched_anew.update(job.output if job.rule.name == "fetch_dataset" else ())
    faults = other_than_pinned(plan.selected, fetched_anew=fetched_anew)
    if faults:
        raise WorkflowError("\n".join(faults))


def set_aside_judgements():
    """Move verdicts and pages that this run makes anew into previous/: after a failed run they would look current."""
    for job in workflow.dag.needrun_jobs():
        for path in map(Path, job.output if job.rule.name in JUDGEMENTS else ()):
            if path.is_file():
                (path.parent / "previous").mkdir(exist_ok=True)
                path.replace(path.parent / "previous" / path.name)


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
