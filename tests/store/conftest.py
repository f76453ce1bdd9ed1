"""Fixtures for tests of model files."""

import os

import pytest


@pytest.fixture
def unsynced(monkeypatch):
    """Skip waiting for the disk, which a thousand small files would do; one test checks that files are synced."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
