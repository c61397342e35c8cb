"""The HTML report: one self-contained file that shows what went wrong, where, how sure that is, and what could not be
scored. It holds what ``--format json`` and ``inspect`` say, and asks no network for anything."""
