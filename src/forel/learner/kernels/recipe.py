"""Which pieces a kernel is made of, and the source that they make together; nothing here needs numba."""

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from forel.learner.kernels.many_lanes import MANY_LANES
from forel.learner.kernels.one_lane import ONE_LANE
from forel.learner.kernels.slopes import IMPLICIT, MARGINAL, SOFTMAX
from forel.learner.kernels.template import TEMPLATE

__all__ = ["FLAGS", "Recipe", "room"]

# Sums keep their order, because dithered sums mean it, and infinities are looked for.
FLAGS = frozenset({"nsz", "arcp", "contract", "afn"})
LINE = 64  # bytes of a cache line
AHEAD, WIDE_AHEAD = 100, 32  # how many non-zeros ahead a coordinate is asked for, and one that is longer than a line
RECORDS = ("exempt", "fetch", "fetch_rest", "give", "give_rest", "spread", "spread_rest")
MARK = re.compile(r" *#([a-z]+) ")
LABELS = {
    "shared": "labels[r]",
    "classes": "(one if labels[r] == CLASS else zero)",
    "signs": "(one if labels[r] == CLASS else -one)",
}


def room(numbers: int) -> int:
    """Return how far apart records of so many numbers are: three take the room of four.

    None of them reaches into a second cache line then, and they are loaded and stored as one.

    >>> room(2), room(3), room(4), room(32)
    (2, 4, 4, 32)
    """
    return 4 if numbers == 3 else numbers


@dataclass(frozen=True)
class Recipe:
    """Which pieces a kernel is made of, by name; ``loss`` may also be a function of the user's own.

    Such a function takes margin and label, and returns value and slope. With ``labels`` "classes" or "signs" lane
    k learns class k against the rest, coded 0 and 1 or −1 and 1; so many ``groups`` of settings share a class.
    """

    loss: str | Callable[[float, float], tuple[float, float]]
    rule: Literal["centered", "proximal", "mirror", "implicit"]
    rate: Literal["adagrad", "scale_free", "constant", "root"]
    weights: Literal["once", "every"]
    lanes: int = 1
    bias: bool = False
    labels: Literal["shared", "classes", "signs"] = "shared"
    double: bool = False
    certified: bool = False
    groups: int = 1

    @property
    def primal(self) -> bool:
        """Whether the state is the point itself."""
        return self.rule in ("mirror", "implicit")

    @property
    def parts(self) -> int:
        """How many numbers the state has for each coordinate and lane."""
        if not self.certified:
            return 2
        return 4 if self.primal else 3 if self.rule == "proximal" else 2

    @property
    def within(self) -> bool:
        """Whether the scale of a scale-free rate is a record's fourth number."""
        return self.rate == "scale_free" and self.lanes == 1 and self.parts < 4

    @property
    def apart(self) -> bool:
        """Whether scales have an array of their own, where records have no room for them."""
        return self.rate == "scale_free" and not self.within

    @property
    def width(self) -> int:
        """How far it is from one coordinate's record to the next one's."""
        return 4 if self.within else room(self.lanes * self.parts)

    @property
    def catches_up(self) -> Literal["no", "fade", "drift", "replay"]:
        """How a weight that was not seen for some rounds is brought up to date."""
        if self.weights == "once" or self.rule == "centered" or (self.rule == "proximal" and self.rate != "root"):
            return "no"
        if self.rule == "proximal":
            return "replay"
        return "drift" if self.rate == "root" else "fade"

    @property
    def counts(self) -> bool:
        """Whether each coordinate's last round is kept."""
        return self.catches_up in ("fade", "replay")

    @property
    def elapses(self) -> bool:
        """Whether a record keeps the strength of the round in which it was last seen, in place of n."""
        return self.rate == "root" and self.rule != "centered" and self.catches_up == "no"

    def pieces(self) -> dict[str, str]:
        """Return the functions that the template names, by the names it gives them, as module.function."""
        summed = self.rate in ("adagrad", "scale_free")
        timed = "elapsed" if self.elapses else "timed"
        chosen = {
            "measure": "adagrad_root" if summed else "timed_root",
            "grown": "adagrad_grown" if summed else f"{timed}_grown",
            "strength": f"{self.rate if summed else timed}_strength",
            "gain": f"{self.rate if summed else timed}_gain",
            "clock": "no_clock" if summed else f"{self.rate}_clock",
            "weight": "primal_weight" if self.primal else "dual_weight",
            "step": "mirror_step" if self.primal else f"{self.rule}_step",
            "total": f"{self.weights}_total",
            "now_weight": f"{self.weights}_now",
            **{name: name for name in ("argmin", "faded", "drifted", "tick")},
        }
        found = {name: f"pieces.{piece}" for name, piece in chosen.items()}
        found |= {"add": "dither.add", "noise": "dither.noise", "prefetch": "prefetch.prefetch"}
        found |= {"carray": "address.carray", "pointer": "address.pointer"}
        found |= {"owned": "scratch.owned", "release": "scratch.release"}
        found |= {"unit": "units.unit", "inverse": "units.inverse"}
        found |= {name: f"records.{name}" for name in RECORDS}
        if isinstance(self.loss, str) and self.loss != "softmax":
            found["loss"] = f"losses.{self.loss}"
        return found

    def _lines(self) -> list[int]:
        """Return the numbers of a coordinate's record whose cache lines are asked for."""
        record, line = self.width, LINE // (8 if self.double else 4)
        # A record that does not divide a line, or lines, may reach into one more.
        return [*range(0, record, line), *([record - 1] if max(record, line) % min(record, line) else [])]

    def source(self, imports: str) -> str:
        """Return the template with this recipe's lines and literals."""
        wanted = {
            "see": self.rate == "scale_free",
            "within": self.within,
            "apart": self.apart,
            "timed": self.rate in ("constant", "root"),
            "bias": self.bias,
            "dither": not self.double,
            "implicit": self.rule == "implicit",
            "explicit": self.rule != "implicit",
            "since": self.counts,
            "late": self.catches_up != "no",
            "behind": self.catches_up != "no" or self.apart,
            **{name: self.catches_up == name for name in ("fade", "drift", "replay")},
            "proof": self.certified,
            "gradients": self.parts >= 3,
            "points": self.parts == 4,
            "own": not isinstance(self.loss, str),
            "dual": not self.primal,
            "primal": self.primal,
        }
        inner = SOFTMAX if self.loss == "softmax" else MARGINAL + (IMPLICIT if self.rule == "implicit" else "")
        hints = [f"prefetch(zn, ahead + np.uint64({place}))" for place in self._lines()]
        coordinates = ONE_LANE if self.lanes == 1 else MANY_LANES
        text = TEMPLATE
        for name, part in {"coordinates": coordinates, "loss": inner, "prefetch": "\n".join(hints)}.items():
            indented = partial(_indented, part.rstrip())
            text = re.sub(rf"^( *)\{{{name}\}}$", indented, text, flags=re.M)
        literals = {
            "imports": imports,
            "flags": "{" + ", ".join(map(repr, sorted(FLAGS))) + "}",
            "real": "np.float64" if self.double else "np.float32",
            "lanes": self.lanes,
            "groups": self.groups,
            "parts": 4 if self.within else self.parts,
            "width": self.width,
            "ahead": AHEAD if self.lanes <= 8 else WIDE_AHEAD,
            "kinds": 3 if self.rule == "implicit" else 2,
            "bias": int(self.bias),
            "limit": "1e150" if self.double else "1e19",  # its square is within the range
            "largest": "1e300" if self.double else "1e30",
        }
        for name, literal in literals.items():
            text = text.replace(f"{{{name}}}", str(literal))
        text = text.replace("STATE", "zn, reach, last, mark, t, totals, params, row, desk, squares")
        # Lanes that do not fill registers would be unrolled before they are put side by side: their number is not told.
        text = text.replace("TURNS", "L" if self.lanes < 4 or self.lanes % 8 == 0 else "params.shape[0] // 5")
        text = text.replace("LABEL", LABELS[self.labels])
        text = text.replace("CLASS", "k" if self.groups == 1 else "k // GROUPS")
        if not isinstance(self.loss, str):
            text = text.replace(", shape)", ")")
        return "\n".join(_kept(text.splitlines(), wanted)) + "\n"


def _indented(text: str, place: re.Match[str]) -> str:
    """Return a text as far to the right as the place it is put at."""
    return textwrap.indent(text, place[1])


def _kept(lines: list[str], wanted: dict[str, bool]) -> Iterator[str]:
    """Yield the lines whose marks are all wanted, without the marks."""
    for line in lines:
        while (mark := MARK.match(line)) and mark[1] in wanted:
            if not wanted[mark[1]]:
                break
            line = line.replace(f"#{mark[1]} ", "", 1)
        else:
            yield line
