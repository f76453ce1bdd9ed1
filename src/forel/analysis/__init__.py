"""The analysis: play the game, measure regret, evaluate the theorems."""

from forel.analysis.game import Adversary, Trace, play

__all__ = ["Adversary", "Trace", "play"]
