"""What a run ends with in the terminal: the verdict, its findings, and where the page is. Imports nothing heavy."""

from textwrap import wrap

from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core.names import harmless, printable

MOST_LINES, WIDTH = 12, 110


def last_words(audit: str, verdict: Verdict, *, page: str | None = None) -> list[str]:
    """At most MOST_LINES lines on an audit: the verdict's sentence, findings by rank, the path of its page."""
    end = [f"Open {page}"] if page else []
    lines = wrap(f"{audit}: {harmless(verdict.sentence)}", WIDTH)[: MOST_LINES - len(end)]
    for finding in verdict.findings:
        sentence = printable(finding.sentence)
        more = wrap(f"{sentence}.", WIDTH, initial_indent="- ", subsequent_indent="  ")
        if sentence not in verdict.sentence and len(lines) + len(more) + len(end) <= MOST_LINES:
            lines += more
    return lines + end
