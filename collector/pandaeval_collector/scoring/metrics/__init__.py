"""The metrics, one module each, in a folder per level."""
