"""Write the table of methods: ``python -m forel.theory.argmin docs/argmin.md``."""

import pathlib
import sys

from forel.theory.argmin.methods import markdown

if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")
