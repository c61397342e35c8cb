"""Attacks on a running collector, with normal traffic beside them.

``attack``: registry. ``requests``: bytes. ``doors``: sending. ``beside``: normal traffic and measurements.
``tests/lab/proofs/attacks.py`` runs them.
"""
