"""Brings a judge nearer to people, by guidelines that are proved on their labels.

Imports replay.
"""
