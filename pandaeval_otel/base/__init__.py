"""What every room uses: attribute names, caps, JSON, names made printable, and how components are found. Imports no
other room."""
