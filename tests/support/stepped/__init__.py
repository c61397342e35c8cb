"""A collector whose time, commits, answers and death the test controls.

The pipeline, store, outboxes and judge runner are real, on one thread.
"""
