"""The page of an audit, report.html: verdict, picture and findings, then a section for each question."""
