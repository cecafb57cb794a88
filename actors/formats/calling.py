"""The ways to call functions, each a renderer and a parser: native, schema and text. All pure."""

from collections.abc import Mapping

from everlog.actors.formats.native import Native
from everlog.actors.formats.reading import Way
from everlog.actors.formats.schema import Schema
from everlog.actors.formats.text import Text

WAYS: Mapping[str, Way] = {"native": Native(), "schema": Schema(), "text": Text()}
"""By the word of `AgentConfigured.calling`."""
