"""A collector whose every step is the test's: time, commits, answers of sinks and judges, and the moment of its death.

The pipeline, the line, the store, the outboxes and the judge's runner are the real ones, on one thread.
"""
