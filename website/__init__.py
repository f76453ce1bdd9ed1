"""How the documentation site is built: formulas, figures, the reference and the docstrings in it."""
