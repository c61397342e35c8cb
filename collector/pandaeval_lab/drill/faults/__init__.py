"""The faults: each public module here is one, found by its ``FAULT``."""
