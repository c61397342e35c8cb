"""Assemble a collector from its configuration, start its parts, and stop them in reverse.

Imports base, config, exporters, jobs, judge, kafka, labels, pipeline, receivers, runs, scoring, show, store.
"""
