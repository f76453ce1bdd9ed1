"""Statements that hold on every stream, at any moment: comparisons, confidence sequences, coverage and alarms.

``means`` is the confidence sequence that the others use; ``comparison`` compares the losses of two models, row by row;
``coverage`` has intervals for numbers, ``alarms`` detectors of change, and the share of features that are new, which
one of them watches. Each keeps one small array of float64, ``state``, which is all that a checkpoint needs, and whose
bits do not depend on how rows are divided into blocks. ``kernels`` is compiled.
"""

from forel.evidence.alarms import Alarm, Alarms, NewFeatures
from forel.evidence.comparison import Comparison
from forel.evidence.coverage import Coverage
from forel.evidence.means import MeanSequence

__all__ = ["Alarm", "Alarms", "Comparison", "Coverage", "MeanSequence", "NewFeatures"]
