"""Puts a running collector together from its configuration. Imports every room but cli."""
