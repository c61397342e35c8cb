"""Pure functions: rules over one trace, formulas over numbers, text to vectors. Imports base."""
