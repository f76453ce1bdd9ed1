"""A local page for teaching: assemble an algorithm, play it against an adversary, see regret under its bound."""

from forel.lab.game import answer
from forel.lab.server import serve

__all__ = ["answer", "serve"]
