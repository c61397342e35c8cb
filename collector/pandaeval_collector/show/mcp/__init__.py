"""Tools by which coding agents ask what a collector scored, over the Model Context Protocol. They read; one starts
runs, within a budget."""
