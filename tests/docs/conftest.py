"""The fixtures of the tests of pages: those of the command line, whose commands the pages show."""

from tests.interfaces.conftest import cli

__all__ = ["cli"]
