"""Tools by which coding agents ask what a collector scored, over the Model Context Protocol. They only read."""
