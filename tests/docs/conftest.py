"""Fixtures of the tests of pages: those of the command line, because the pages show commands."""

from tests.interfaces.conftest import cli, made

__all__ = ["cli", "made"]
