"""Streams with numeric labels for ``benchmarks/quality.py``, as lines of VW text: real data sets, and generated.

The default experts of squared loss were chosen on the streams of ``CHOSEN`` only.
"""

import csv
import gzip

import numpy as np
from sklearn.datasets import load_diabetes

DROPPED = ("casual", "registered", "instant", "dteday")
CALENDAR = ("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit")


def bike(path, categories):
    """Hourly numbers of rented bikes; parts of the calendar as numbers or as categories."""
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            label = row.pop("cnt")
            kept = [name for name in row if name not in DROPPED]
            signs = {name: "=" if categories and name in CALENDAR else ":" for name in kept}
            yield f"{label} | {' '.join(name + signs[name] + row[name] for name in kept)}\n"


def numbers(names, values):
    """Features with values."""
    return " ".join(f"{name}:{value:.5g}" for name, value in zip(names, values, strict=True))


def with_lags(seed, rows=15_000, level=50.0, seasons=(10.0, 5.0), trend=0.001, memory=0.8, lags=(1, 2, 24), spread=0.0):
    """A daily and a weekly season, a trend and autocorrelated noise; features are hour, weekday and earlier labels."""
    rng, noise, skipped = np.random.default_rng(seed), 0.0, max(lags)
    y = np.empty(rows + skipped)
    for t in range(y.size):
        noise = memory * noise + rng.normal() * (1 + spread * (1 + np.sin(2 * np.pi * t / 24)))
        season = seasons[0] * np.sin(2 * np.pi * t / 24) + seasons[1] * np.cos(2 * np.pi * t / 168)
        y[t] = level + season + trend * t + noise
    for t in range(skipped, y.size):
        yield f"{y[t]:.5g} | h{t % 24} d{t // 24 % 7} {numbers([f'l{k}' for k in lags], [y[t - k] for k in lags])}\n"


def with_calendar(seed, rows=15_000, walk=0.02, jumps=0.0):
    """Effects of hour, weekday and temperature on a level that drifts, or jumps; features are those three."""
    rng = np.random.default_rng(seed)
    hour, day, level = 3 * rng.normal(size=24), rng.normal(size=7), 0.0
    for t in range(rows):
        level += walk * rng.normal() + (5 * rng.normal() if rng.random() < jumps else 0.0)
        hour += 0.01 * rng.normal(size=24)
        warm = 15 + 10 * np.sin(2 * np.pi * t / 8760) + 3 * rng.normal()
        y = 100 + 10 * (hour[t % 24] + day[t // 24 % 7] + level) + 1.5 * warm + 5 * rng.normal()
        yield f"{y:.5g} | h{t % 24} d{t // 24 % 7} warm:{warm:.4g}\n"


def dense(seed, rows=10_000, features=20):
    """Correlated features that are neither centered nor scaled."""
    rng = np.random.default_rng(seed)
    turn, units = rng.normal(size=(features, features)), 10 ** rng.uniform(-2, 2, size=features)
    middle, weights = 2 * rng.normal(size=features), rng.normal(size=features)
    for _ in range(rows):
        x = turn @ rng.normal(size=features) / np.sqrt(features) + middle
        yield f"{x @ weights + rng.normal():.5g} | {numbers([f'f{i}' for i in range(features)], x * units)}\n"


def drifting(seed, rows=10_000, features=10):
    """Weights that are random walks."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=features)
    for _ in range(rows):
        weights += 0.02 * rng.normal(size=features)
        x = rng.normal(size=features)
        yield f"{3 + x @ weights + 0.5 * rng.normal():.5g} | {numbers([f'f{i}' for i in range(features)], x)}\n"


def ratings(seed, rows=20_000, users=500, items=300):
    """Ratings of items by users, with Zipf frequencies."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=users) / 2, rng.normal(size=items) / 2
    chances = np.arange(1, users + 1) ** -0.8, np.arange(1, items + 1) ** -0.9
    for _ in range(rows):
        user, item = (rng.choice(p.size, p=p / p.sum()) for p in chances)
        score = 3.6 + effects[0][user] + effects[1][item] + 0.9 * rng.normal()
        yield f"{np.clip(np.round(2 * score) / 2, 0.5, 5):g} | u{user} i{item}\n"


def words(seed, rows=5_000, size=5_000):
    """Texts of which few words matter."""
    rng = np.random.default_rng(seed)
    weights = 20 * rng.normal(size=size) * (rng.random(size) < 0.05)
    p = 1 / np.arange(1, size + 1)
    for _ in range(rows):
        text = rng.choice(size, size=40, p=p / p.sum())
        label = 200 + weights[text].sum() + 10 * rng.normal()
        yield f"{label:.5g} | {' '.join(f'w{j}' for j in np.unique(text))}\n"


def heavy_tails(seed, rows=10_000, features=8):
    """Labels that are exponentials, and features as numbers and as ranges."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=features) / 2
    for _ in range(rows):
        x = rng.normal(size=features)
        ranges = " ".join(f"g{int(np.floor(2 * v))}_{i}" for i, v in enumerate(x))
        label = np.exp(1 + x @ weights + 0.5 * rng.normal())
        yield f"{label:.5g} | {numbers([f'f{i}' for i in range(features)], x)} {ranges}\n"


def diabetes():
    """Rows of scikit-learn's diabetes data, unscaled and shuffled."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    for t in np.random.default_rng(0).permutation(len(y)):
        yield f"{y[t]:g} | {numbers([f'f{i}' for i in range(X.shape[1])], X[t])}\n"


CHOSEN = {
    "diabetes": diabetes,
    "hourly, lags": lambda: with_lags(1),
    "hourly, calendar": lambda: with_calendar(2),
    "dense, unscaled": lambda: dense(3),
    "drifting weights": lambda: drifting(4),
    "ratings": lambda: ratings(5),
    "words": lambda: words(6),
    "heavy tails": lambda: heavy_tails(7),
}
GENERATED = {
    "hourly, lags of a week": lambda: with_lags(11, level=300.0, seasons=(40.0, 25.0), lags=(1, 24, 168), spread=1.0),
    "hourly, jumps": lambda: with_calendar(12, walk=0.0, jumps=0.002),
}


def sets(data):
    """Names of streams with functions of their lines: those that are not chosen on first."""
    path = data / "bike_sharing.csv.gz"
    real = {"bike_sharing": False, "bike_sharing, categories": True} if path.exists() else {}
    return {**{name: lambda c=c: bike(path, c) for name, c in real.items()}, **GENERATED, **CHOSEN}
