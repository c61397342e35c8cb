"""One module per provider's wire format, each with ``parse``, ``render``, ``stream`` and ``fault``."""
