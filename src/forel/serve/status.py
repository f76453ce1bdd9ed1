"""Numbers about a server: as JSON for its page and programs, and as text for Prometheus."""

import math
import time
from typing import Any

from forel.serve.models import Models
from forel.serve.service import Latency, Service
from forel.version import __version__

__all__ = ["metrics_text", "status"]


def status(service: Service) -> dict[str, Any]:
    """Return everything that is known about a server's models, log and requests."""
    contest, index, log = service.contest, service.index, service.log
    model, learner, now = service.model, service.model.learner, time.time()
    served, fresh = contest.served.report(), contest.fresh.report()
    oldest = index.oldest
    mixture = learner.mixture
    experts = [] if mixture is None else [
        {"name": name, "weight": float(weight)} for name, weight in zip(learner.names, learner.posterior, strict=True)
    ]  # fmt: skip
    guarantee, floor = learner.guarantee(), contest.certificate()
    frontier = None if floor is None else floor.frontier()
    return {
        "version": __version__, "time": now, "served": contest.champion, "settings": model.settings.summary,
        "classes": model.classes, "rows": contest.rows, "position": contest.position,
        "loss": {"name": model.settings.title, "as_served": _finite(served.loss),
                 "when_outcome_came": _finite(fresh.loss), "cost_of_delay": _finite(contest.delay_cost)},
        "calibration": None if served.calibration is None else _finite(served.calibration),
        "calibration_table": [list(vars(one).values()) for one in served.table],
        "auc": served.auc, "accuracy": served.accuracy,
        "interval": None if contest.coverage is None else contest.coverage.to_json(),
        "certificate": None if floor is None else floor.summary(), "frontier": frontier,
        "guarantee": None if guarantee is None else str(guarantee),
        "experts": experts, "models": _models(service),
        "alarms": {"found": [str(one) for one in contest.alarms.found], "sentence": contest.alarms.sentence()},
        "waiting": len(index.waiting), "waiting_ages": index.ages(now),
        "oldest": None if oldest is None else now - oldest[0],
        "counts": dict(service.counts), "queue": service.queued,
        "log": {"end": log.end, "durable": log.durable, "segments": len(log.segments)},
        "latency": {"predictions": _latency(service.predicted), "acknowledgements": _latency(service.acknowledged)},
        "offsets": contest.offsets, "recent": Models(service).recent(), "health": service.problem or "ok",
    }  # fmt: skip


def _models(service: Service) -> list[dict[str, Any]]:
    contest, found = service.contest, []
    for name, fold in contest.folds.items():
        comparison = contest.comparisons.get(name)
        one: dict[str, Any] = {
            "name": name, "served": name == contest.champion, "rows": int(fold.learner.rounds),
            "loss": _finite(fold.metrics.report().loss), "settings": fold.model.settings.summary,
        }  # fmt: skip
        if comparison is not None:
            served, own = comparison.log_e_values()
            one["against_served"] = {
                "interval": comparison.interval(), "sentence": comparison.sentence(contest.champion, name),
                "better": {"A": contest.champion, "B": name}.get(comparison.better or ""), "level": comparison.level,
                "log_e_values": {contest.champion: served, name: own}, "kind": comparison.kind,
            }  # fmt: skip
        found.append(one)
    return found


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _latency(latency: Latency) -> dict[str, Any]:
    return {"count": latency.count, "p50": latency.quantile(0.5), "p99": latency.quantile(0.99)}


def metrics_text(service: Service) -> bytes:
    """Return the numbers as Prometheus reads them."""
    contest, index, log, lines = service.contest, service.index, service.log, list[str]()

    def add(name: str, kind: str, help: str, *values: tuple[str, float]) -> None:
        lines.append(f"# HELP forel_{name} {help}")
        lines.append(f"# TYPE forel_{name} {kind}")
        lines.extend(f"forel_{name}{labels} {value!r}" for labels, value in values)

    counts = [(f'{{what="{name}"}}', float(count)) for name, count in sorted(service.counts.items())]
    add("events_total", "counter", "Requests and records by what became of them.", *counts)
    add("rows_learned", "counter", "Rows learned from.", ("", float(contest.rows)))
    add("waiting", "gauge", "Predictions that wait for their outcome.", ("", float(len(index.waiting))))
    about = f"Ids that had their outcome, of the last {index.remember:,}, with about 220 bytes of memory each."
    add("remembered", "gauge", about, ("", float(len(index.settled))))
    add("queue", "gauge", "Recorded events that are not learned yet.", ("", float(service.queued)))
    add("log_bytes", "counter", "Bytes of the log.", ("", float(log.end)))
    losses = (("as_served", contest.served), ("when_outcome_came", contest.fresh))
    means = [(f'{{when="{name}"}}', float(found.report().loss)) for name, found in losses]
    add("loss", "gauge", "Average loss of predictions.", *(one for one in means if math.isfinite(one[1])))
    add("drift_alarms", "gauge", "Alarms for drift that are kept.", ("", float(len(contest.alarms.found))))
    add("learning", "gauge", "1 if outcomes are recorded and learned.", ("", float(not service.problem)))
    for name, found in (("prediction", service.predicted), ("acknowledgement", service.acknowledged)):
        last = [(f'{{quantile="{share}"}}', found.quantile(share)) for share in (0.5, 0.9, 0.99)]
        known = [(labels, value) for labels, value in last if value is not None]
        sums = ("_sum", found.total), ("_count", float(found.count))
        add(f"{name}_seconds", "summary", f"Latency of the last {name}s in the server.", *known, *sums)
    return ("\n".join(lines) + "\n").encode()
