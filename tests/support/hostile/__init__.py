"""What a hostile or broken sender can do to a running collector, and the normal traffic beside it.

``attack`` is the registry of attacks, ``requests`` makes their bytes, ``doors`` sends them, ``beside`` is the normal
traffic and what is measured of the collector meanwhile. ``tests/lab/proofs/attacks.py`` runs them.
"""
