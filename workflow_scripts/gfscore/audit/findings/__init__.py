"""What an audit shows, as data that are ranked, and the one place where words are made of them.

`findings_of` reads the tables of an audit and its verdict; `in_words` makes sentences. Page, verdict.json, titles of
charts, model cards and terminal hold the same findings.
"""

from gfscore.audit.findings.finding import Finding
from gfscore.audit.findings.making import findings_of
from gfscore.audit.findings.words import first_findings, in_words, sentence

__all__ = ["Finding", "findings_of", "first_findings", "in_words", "sentence"]
