"""What every room uses: scores and results, sections of the configuration, errors, counts, untrusted text, the process
itself. Imports no other room."""
