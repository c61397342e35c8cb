"""The HTML report: a self-contained file with failures, their certainty, and missing scores."""
