"""Reports and mixtures as JSON values."""

import math
from dataclasses import asdict
from typing import Any

from forel.learner.protocol import Learner
from forel.training.metrics import Report

__all__ = ["jsonable", "mixture_summary"]


def mixture_summary(model: Learner) -> dict[str, Any] | None:
    """Return the guarantee, the experts, the best first, and the kinds of a mixture as JSON; None for one model."""
    found = model.explain()
    if found is None:
        return None
    settings = [
        {"setting": s.name, "kind": s.kind, "loss": s.loss, "behind": s.behind, "posterior": s.weight}
        for s in sorted(found.experts, key=lambda one: one.loss)
    ]
    kinds = {"kinds": [asdict(one) for one in found.kinds], "exact": found.exact}
    return {"guarantee": found.guarantee, "settings": settings, **kinds}


def jsonable(report: Report | None) -> Any:
    """Return a report as JSON, with None for numbers that are not finite."""
    if report is None:
        return None
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in asdict(report).items()}
