"""Proposes rulings for a judge, and tests them on people's labels.

Imports replay.
"""
