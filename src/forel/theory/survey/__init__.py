"""The survey, recomputed: numbered results, both algorithms, all figures, and what is beyond, as (measured, bound)."""

from forel.theory.survey.beyond import BEYOND as EXTENSIONS
from forel.theory.survey.errata import ERRATA, Erratum
from forel.theory.survey.figures import FIGURES
from forel.theory.survey.lemmas import LEMMAS
from forel.theory.survey.result import Outcome, Result
from forel.theory.survey.theorems import THEOREMS

__all__ = ["ERRATA", "EXTENSIONS", "RESULTS", "Erratum", "Outcome", "Result"]


def _number(result: Result) -> tuple[bool, str, int]:
    kind, number = result.key.split()
    picture = kind in ("Algorithm", "Figure")
    return picture, kind if picture else "", int(number)


RESULTS: tuple[Result, ...] = tuple(sorted((*LEMMAS, *THEOREMS, *FIGURES), key=_number))
