"""The page of an audit, report.html: verdict, picture and findings on its first screen, then six sections."""
