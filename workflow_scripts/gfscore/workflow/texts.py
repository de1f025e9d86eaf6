"""Texts of config.yaml that Snakemake's own report shows: it puts them between script tags as they are."""

ENDS = ("</", "<!--")
"""What ends a script in a page, or changes where it ends, even within quotes."""


def text_mistakes(config):
    """Sentences about titles, contacts and architectures that would end a script of Snakemake's report."""
    texts = {"report: contact": config["report"]["contact"]}
    texts |= {f"audits: {name}: title": audit["title"] for name, audit in config["audits"].items()}
    for zoo, threats in config["models"].items():
        for threat, models in threats.items():
            for name, entry in models.items():
                texts[f"models: {zoo}/{threat}/{name}: architecture"] = entry.get("architecture")
    for where, text in texts.items():
        for end in ENDS:
            if end in (text or ""):
                yield f"{where}: {end} in {text!r} would end a script of Snakemake's report; leave it out"
