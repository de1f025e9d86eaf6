"""The verdict on an audit."""

from gfscore.files import read_json, write_json
from gfscore.jobs import logged_job
from gfscore.tables import read_table
from gfscore.verdict import judge


def judge_audit(path_to_class_scores, path_to_selection, path_to_verdict, *, audit, rules, measures):
    """Write verdict.json; succeeds whatever the verdict, which the rule `gate` turns into an exit status."""
    class_scores = read_table(path_to_class_scores, "class_scores", expect={"audit": audit})
    write_json(
        path_to_verdict,
        judge(class_scores, rules, measures=measures, excluded=read_json(path_to_selection)["excluded"]),
    )


if __name__ == "__main__":
    with logged_job(snakemake.log[0]):
        judge_audit(
            snakemake.input.class_scores,
            snakemake.input.selection,
            snakemake.output.verdict,
            audit=snakemake.wildcards.audit,
            **snakemake.params,
        )
