"""The metrics, one file each, in a folder named after their subject."""
