"""The faults: each public module is a family, found by its ``FAULTS``."""
