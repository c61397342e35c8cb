"""Builds a running collector from its configuration, starts its parts in order, and stops them in reverse.

Imports base, config, exporters, jobs, judge, kafka, labels, pipeline, receivers, runs, scoring, show, store.
"""
