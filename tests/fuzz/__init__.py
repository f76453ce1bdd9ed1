"""Fuzzers: each has ``run(seconds, seed)``, which tests call for a while, and a ``main`` for longer."""
