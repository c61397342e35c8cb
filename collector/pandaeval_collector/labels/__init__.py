"""People's verdicts: read from files, drawn for, held against judges, and made into pass rates."""
