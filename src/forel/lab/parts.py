"""What a game is assembled from: one table, a line for each part, with the code that it stands for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forel.validation import number, refuse, whole

__all__ = ["GROUPS", "MOST", "NUMBERS", "Group", "Number", "Part", "checked_number"]

# Where no closed form is known, each round takes a solver milliseconds, and more with each loss that is kept as it is.
MOST = {"rounds": 300, "n": 8, "solved": 40, "kept": 12}


@dataclass(frozen=True)
class Number:
    """A parameter of a part: its name, default and limits, and whether it is whole."""

    name: str
    default: float
    low: float = 1e-6
    high: float = 1e6
    whole: bool = False


@dataclass(frozen=True)
class Part:
    """A choice: its key and name, and the code of an argument, in which numbers are named in braces.

    ``groups`` are those whose parts are further arguments. A set has ``best``, the point where ``total`` · x is least,
    or least within norm 1; an adversary is ``linear`` where its losses are.
    """

    key: str
    name: str
    code: str = ""
    numbers: tuple[Number, ...] = ()
    groups: tuple[str, ...] = ()
    best: str = ""
    linear: bool = True
    feasible: str = ""


@dataclass(frozen=True)
class Group:
    """Parts of which a game has one, the first by default."""

    name: str
    title: str
    parts: tuple[Part, ...]

    def __getitem__(self, key: str) -> Part:
        """Return the part of a key; raise ValueError if there is none."""
        for part in self.parts:
            if part.key == key:
                return part
        raise refuse(self.name, key, " or ".join(part.key for part in self.parts))


SCALE, OFFSET = Number("scale", 1.0), Number("offset", 1.0, 0.0)
RADIUS, LIPSCHITZ = Number("radius", 1.0), Number("lipschitz", 1.0)
L1, L2 = Number("l1", 0.1, 0.0), Number("l2", 0.1, 0.0)
OBJECTIVE = ("penalty", "weights", "feasible")

_ALL = (
    Group("algorithm", "algorithm", (
        Part("ftrl", "FTRL", "FTRL", groups=("rate", "geometry", "center", "surrogate", *OBJECTIVE, "hint", "delay")),
        Part("mirror", "Mirror Descent", "MirrorDescent", groups=("rate", "geometry", *OBJECTIVE)),
        Part("implicit", "implicit updates", "Implicit", groups=("rate", "geometry", *OBJECTIVE)),
        Part("coins", "coin betting", "CoinBetting", groups=("endowment",), feasible="reals"),
        Part("squint", "Squint", "Squint", feasible="simplex"),
        Part("vaw", "Vovk–Azoury–Warmuth", "VovkAzouryWarmuth", groups=("ridge",), feasible="reals"),
    )),
    Group("rate", "rate η_t", (
        Part("sqrt", "c/√(t + offset)", "InverseSqrt({scale}, {offset})", (SCALE, OFFSET)),
        Part("constant", "constant η", "Constant({eta})", (Number("eta", 0.3),)),
        Part("time", "1/(μt)", "InverseTime({curvature})", (Number("curvature", 1.0),)),
        Part("scalar", "AdaGrad, one number", "ScalarAdaGrad({scale}, {offset})", (SCALE, OFFSET)),
        Part("diagonal", "AdaGrad, per coordinate", "DiagonalAdaGrad({scale}, {offset})", (SCALE, OFFSET)),
        Part("matrix", "AdaGrad, a matrix", "MatrixAdaGrad({scale}, {offset})", (SCALE, OFFSET)),
        Part("free", "scale-free, per coordinate", "ScaleFree({alpha}, {beta})",
             (Number("alpha", 1.0), Number("beta", 1.0, 0.0))),
        Part("curved", "what the losses' curvature lacks", "CurvatureAdaptive({diameter})", (Number("diameter", 2.0),)),
        Part("none", "no strength: follow the leader", "Unregularized()"),
    )),
    Group("geometry", "geometry φ", (
        Part("euclidean", "Euclidean", "Euclidean()"),
        Part("diagonal", "diagonal", "Diagonal()"),
        Part("matrix", "full matrix", "FullMatrix()"),
        Part("entropy", "entropy", "Entropy()"),
        Part("pnorm", "squared p-norm", "SquaredPNorm({p})", (Number("p", 1.5, 1.0, 2.0),)),
    )),
    Group("center", "center", (
        Part("first", "around x₁ (centered)"),
        Part("point", "around x_t (proximal)", 'center="played"'),
    )),
    Group("surrogate", "losses kept as", (
        Part("tangent", "tangents"),
        Part("quadratic", "quadratics below", "surrogate=QuadraticBound()"),
        Part("newton", "exp-concave quadratics", "surrogate=ExpConcave({gamma})", (Number("gamma", 0.25),)),
        Part("exact", "as they are", "surrogate=Exact()"),
    )),
    Group("penalty", "penalty Ψ", (
        Part("none", "none"),
        Part("l1", "λ‖x‖₁", "penalty=l1({l1})", (L1,)),
        Part("squared", "(λ/2)‖x‖₂²", "penalty=squared_l2({l2})", (L2,)),
        Part("elastic", "elastic net", "penalty=ElasticNet({l1}, {l2})", (L1, L2)),
        Part("l2", "λ‖x‖₂", "penalty=l2({l2})", (L2,)),
    )),
    Group("weights", "penalty comes", (
        Part("every", "in every round", "weights=EveryRound()"),
        Part("once", "once", "weights=Once()"),
    )),
    Group("feasible", "feasible set X", (
        Part("ball", "L2 ball", "feasible=l2_ball({radius})", (RADIUS,),
             best="-{radius} * total / max(np.linalg.norm(total), 1e-300)"),
        Part("reals", "everywhere", best="-total / max(np.linalg.norm(total), 1e-300)"),
        Part("box", "box", "feasible=linf_ball({radius})", (RADIUS,), best="-{radius} * np.sign(total)"),
        Part("diamond", "L1 ball", "feasible=l1_ball({radius})", (RADIUS,),
             best="-{radius} * np.sign(total) * np.eye({n})[np.argmax(abs(total))]"),
        Part("simplex", "simplex", "feasible=Simplex()", best="np.eye({n})[np.argmin(total)]"),
    )),
    Group("hint", "hint m_t", (
        Part("none", "none"),
        Part("last", "c times the last gradient", "hint=lambda t, g: {factor} * g", (Number("factor", 1.0, -10.0),)),
    )),
    Group("delay", "delay", (
        Part("none", "none"),
        Part("late", "gradients come late", "delays={delay}", (Number("delay", 1.0, 0, 100, whole=True),)),
    )),
    Group("endowment", "gamblers", (
        Part("one", "one gambler", "{endowment}, {lipschitz}", (Number("endowment", 1.0), LIPSCHITZ)),
        Part("each", "one for each coordinate", "{endowment}, {lipschitz}, per_coordinate=True",
             (Number("endowment", 1.0), LIPSCHITZ)),
    )),
    Group("ridge", "ridge", (Part("ridge", "(λ/2)‖x‖₂²", "{ridge}", (Number("ridge", 1.0),)),)),
    Group("adversary", "adversary", (
        Part("random", "random directions", "random_linear({n}, {rounds}, {seed}, lipschitz={lipschitz})",
             (LIPSCHITZ,)),
        Part("you", "you", "[Linear(g) for g in {moves}]"),
        Part("worst", "the costliest gradient", "worst_linear(lipschitz={lipschitz})", (LIPSCHITZ,)),
        Part("orthogonal", "orthogonal to x_t and the past", "orthogonal({lipschitz})", (LIPSCHITZ,)),
        Part("alternating", "+G, −G, …", "alternating({lipschitz})", (LIPSCHITZ,)),
        Part("spikes", "rare and large", "spikes({lipschitz}, {period})",
             (LIPSCHITZ, Number("period", 10, 1, 1000, whole=True))),
        Part("switching", "a direction that switches", "switching({n}, {rounds}, {period}, {seed})",
             (Number("period", 20, 1, 1000, whole=True),)),
        Part("experts", "coins of experts", "experts({n}, {rounds}, {seed}, {gap})", (Number("gap", 0.1, 0.0, 0.5),)),
        Part("quadratics", "½‖x − c_t‖²", "quadratics({n}, {rounds}, {seed})", linear=False),
        Part("examples", "logistic examples", "classification({n}, {rounds}, {seed})", linear=False),
        Part("labels", "squared examples", "regression({n}, {rounds}, {seed})", linear=False),
    )),
    Group("comparator", "comparator x*", (
        Part("best", "best in hindsight"),
        Part("given", "a point", "np.array({point})"),
        Part("first", "x₁", "trace.points[0]"),
        Part("last", "x_{T+1}", "trace.points[-1]"),
    )),
)  # fmt: skip
GROUPS: Mapping[str, Group] = {group.name: group for group in _ALL}

# What every game has.
NUMBERS = (
    Number("rounds", 50, 1, MOST["rounds"], whole=True),
    Number("n", 2, 1, MOST["n"], whole=True),
    Number("seed", 0, 0, 1e9, whole=True),
)


def checked_number(name: str, about: Number, text: Any) -> float:
    """Return a parameter as a number within its limits.

    >>> checked_number("rounds", NUMBERS[0], "50")
    50
    >>> checked_number("rate.scale", SCALE, "-1")
    Traceback (most recent call last):
    ValueError: rate.scale: got '-1', expected a number from 1e-06 to 1e+06
    """
    kind = "a whole number" if about.whole else "a number"
    value = number(name, text, f"{kind} from {about.low:g} to {about.high:g}", low=about.low, high=about.high)
    if not about.whole:
        return value
    if value != int(value):
        raise refuse(name, text, f"a whole number from {about.low:g} to {about.high:g}")
    return whole(name, value)
