"""Write the survey map: ``python -m forel.theory.survey docs/survey_map.md``."""

import pathlib
import sys

from forel.theory.survey.map import markdown

if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")
