"""Attacks on a running collector beside normal traffic; ``tests/lab/proofs/attacks.py`` runs them."""
