"""A running collector: what comes in is stored and acknowledged, assembled, handed to the line, and decided."""
