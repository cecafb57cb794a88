"""The ways to call functions, each a renderer and a parser: native, schema and text. All pure."""

from collections.abc import Mapping

from .native import Native
from .reading import Way
from .schema import Schema
from .text import Text

WAYS: Mapping[str, Way] = {"native": Native(), "schema": Schema(), "text": Text()}
"""By the word of `AgentConfigured.calling`."""
