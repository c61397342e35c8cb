"""Wire formats of providers, each with ``parse``, ``render``, ``stream`` and ``fault``."""
