"""From raw spans to a trace in normal form: merge the dialects' readings, then read the tree as a whole."""
