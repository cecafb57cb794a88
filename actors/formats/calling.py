"""The calling formats native, schema and text, each a renderer and a parser. All pure.

Used by `parse_reply.py` and `render_request.py`. Configurations in the log hold the names.
"""

from collections.abc import Mapping

from everlog.actors.formats.calling_format import CallingFormat
from everlog.actors.formats.native_format import NativeFormat
from everlog.actors.formats.schema_format import SchemaFormat
from everlog.actors.formats.text_format import TextFormat

CALLING_FORMATS: Mapping[str, CallingFormat] = {
    "native": NativeFormat(),
    "schema": SchemaFormat(),
    "text": TextFormat(),
}
"""Calling formats by the value of `AgentConfigured.calling`."""
