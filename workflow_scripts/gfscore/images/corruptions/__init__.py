"""The fifteen common corruptions at five severities, for images of any size."""
