"""Rows whose names, values and labels run code: a row is learned as given, or an error gives the reason.

``python -m tests.fuzz.objects --seconds 60`` goes on for longer. What was learned, in the order in which calls return,
is learned once more from plain names and numbers, and both models have to agree to the bit.
"""

import random
import time
from collections import OrderedDict, UserDict
from fractions import Fraction

import numpy as np

from forel.river import LinearClassifier, LinearRegressor
from tests.fuzz.command import command

REFUSALS = (ValueError, RuntimeError, ZeroDivisionError, TypeError, RecursionError)


class Session:
    """A model, and the rows it learned as plain dicts; ``lies`` are names with inconsistent equality."""

    def __init__(self, rng, model, lies=False):
        self.rng, self.model, self.lies = rng, model, lies
        self.learned, self.tried, self.depth, self.awake, self.row = [], 0, 0, False, None
        self.alive = []  # values that run code when they are forgotten

    def act(self, changing=True):
        """Do what code inside a row may do: learn, predict, fail, and change the row that is being read."""
        if not self.awake:
            return
        rng, row = self.rng, self.row
        choice = rng.randrange(8)
        if choice == 0 and self.depth < 3:
            self.learn()
        elif choice == 1 and self.depth < 3:
            self.predict()
        elif choice == 2 and rng.random() < 0.2:
            raise ZeroDivisionError("on purpose")
        elif choice == 6:
            self.alive, gone = [], self.alive
            del gone
        elif type(row) is not dict or not changing:  # of other mappings nobody can tell which row was given
            return
        elif choice == 3:
            row.clear()
        elif choice == 4:
            row.update((f"late {k}", 1.0) for k in range(rng.randrange(300)))
        elif choice == 5:
            for name in list(row)[:2]:
                row[name] = 99.0

    def make(self):
        """Return a row, some of whose names and values run code, and the same in plain words."""
        rng, row, plain = self.rng, {}, {}
        awake, self.awake = self.awake, False
        for _ in range(rng.randrange(7)):
            word, number = f"n{rng.randrange(60)}", rng.randrange(-8, 9) / 4
            name = rng.choice([word, word, word, word, Name(word, self), Text(word, self), (word,)])
            values = Value(number, self), Real(number, self), Fraction(number), np.float32(number), np.int8(number)
            row[name] = value = rng.choice([number, number, number, number, *values])
            plain[repr(name) if type(name) is tuple else word] = float(value)
        kind = rng.choice([dict, dict, dict, dict, Dict, OrderedDict, UserDict])
        values = list(row.values())
        self.alive.append(values)
        made = Dict(row, self) if kind is Dict else kind(row)
        self.awake = awake
        return made, plain, values

    def learn(self):
        """Learn from such a row, and note it if it was learned."""
        rng, (row, plain, values) = self.rng, self.make()
        word = f"class {rng.randrange(3)}" if isinstance(self.model, LinearClassifier) else rng.randrange(5)
        label = Label(word, self) if isinstance(word, str) and rng.random() < 0.3 else word
        self.tried += 1
        with Inside(self, row):
            self.model.learn_one(row, label)
            self.learned.append((plain, word))
        del values  # not before it was noted that the row was learned

    def predict(self):
        row, *_ = self.make()
        with Inside(self, row):
            self.model.predict_one(row)

    def check(self):
        """Compare with a model that learned the same rows from plain objects, or only count where names lie."""
        learner = self.model._learner
        assert learner.state.rounds == len(self.learned)
        assert sorted(learner.names.values()) == list(range(1, len(learner.names) + 1))
        if self.lies:
            return
        fresh = self.model.clone()
        for row, label in self.learned:
            fresh.learn_one(row, label)
        assert spelled(self.model.weights) == spelled(fresh.weights)
        assert spelled(self.model.intercept) == spelled(fresh.intercept)


class Inside:
    """A call during which the row is the one that code may change, and errors on purpose are expected."""

    def __init__(self, session, row):
        self.session, self.row = session, row

    def __enter__(self):
        s = self.session
        self.before, s.row, s.awake, s.depth = (s.row, s.awake), self.row, True, s.depth + 1

    def __exit__(self, kind, *_):
        s = self.session
        (s.row, s.awake), s.depth = self.before, s.depth - 1
        return kind is not None and issubclass(kind, REFUSALS)


def spelled(found):
    """Return the same with names as words."""
    if not isinstance(found, dict):
        return found
    return {repr(k) if type(k) is tuple else getattr(k, "word", k): spelled(v) for k, v in found.items()}


class Name:
    """A name that equals its word, and runs code when it is hashed or compared."""

    def __init__(self, word, session):
        self.word, self.session = word, session

    def __hash__(self):
        self.session.act()
        return hash(self.word)

    def __eq__(self, other):
        self.session.act()
        if self.session.lies and self.session.awake:
            return self.session.rng.random() < 0.5
        return self.word == getattr(other, "word", other)

    def __str__(self):
        self.session.act()
        return self.word

    def __repr__(self):
        return self.word


class Label:
    """A class that runs code likewise; a row is read after its class was looked up, as it is then."""

    def __init__(self, word, session):
        self.word, self.session = word, session

    def __hash__(self):
        self.session.act(changing=False)
        return hash(self.word)

    def __eq__(self, other):
        self.session.act(changing=False)
        return self.word == getattr(other, "word", other)


class Text(str):
    """A string that runs code likewise."""

    def __new__(cls, word, session):
        made = str.__new__(cls, word)
        made.word, made.session = word, session
        return made

    __hash__, __eq__, __str__ = Name.__hash__, Name.__eq__, Name.__str__


class Value:
    """A number that runs code when it is converted, and when it is deleted."""

    def __init__(self, number, session):
        self.number, self.session = number, session

    def __float__(self):
        self.session.act()
        return self.number

    def __add__(self, other):
        self.session.act()
        return self.number + float(other)

    __radd__ = __add__

    def __del__(self):
        try:
            self.session.act(changing=False)  # at a time when another row may not have been read yet
        except REFUSALS:
            return


class Real(float):
    """A float that runs code likewise."""

    def __new__(cls, number, session):
        made = float.__new__(cls, number)
        made.session = session
        return made

    def __float__(self):
        self.session.act()
        return float.__add__(self, 0.0)


class Dict(dict):
    """A dict that runs code when it is read."""

    def __init__(self, row, session):
        super().__init__(row)
        self.session = session

    def __iter__(self):
        self.session.act()
        return super().__iter__()

    def keys(self):
        self.session.act()
        return super().keys()

    def __getitem__(self, name):
        self.session.act()
        return super().__getitem__(name)


MAKERS = (
    lambda: LinearClassifier(alpha=1.0),
    lambda: LinearRegressor(alpha=0.5),
    lambda: LinearClassifier(alpha=1.0, bits=4),
)


def run(seconds: float, seed: int = 0) -> int:
    """Learn from such rows for some seconds, print what was tried, and return how many rows."""
    rng, until, tried, learned, turns = random.Random(seed), time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < until or turns < 2 * len(MAKERS):
        session = Session(rng, MAKERS[turns % len(MAKERS)](), lies=turns % 2 == 1)
        for _ in range(30):
            session.learn()
            session.predict()
            session.check()
        tried, learned, turns = tried + session.tried, learned + len(session.learned), turns + 1
    print(f"objects, seed {seed}: {turns} models, {tried} rows that run code, of which {learned} were learned")
    return learned


def main() -> None:
    command(run, __doc__)


if __name__ == "__main__":
    main()
