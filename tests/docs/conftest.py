"""Fixtures of the tests of pages: those of the command line, because the pages show commands."""

from tests.interfaces.conftest import cli

__all__ = ["cli"]
