"""The ways to call functions, each a renderer and a parser: native, schema and text. All pure."""

from collections.abc import Mapping

from everlog.actors.formats.native import NativeFormat
from everlog.actors.formats.reading import CallingFormat
from everlog.actors.formats.schema import SchemaFormat
from everlog.actors.formats.text import TextFormat

WAYS: Mapping[str, CallingFormat] = {"native": NativeFormat(), "schema": SchemaFormat(), "text": TextFormat()}
"""By the word of `AgentConfigured.calling`."""
