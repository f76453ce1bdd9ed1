"""Build hooks of the documentation site: formulas, figures, the API reference and its docstrings."""
