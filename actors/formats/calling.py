"""The calling formats native, schema and those of text, each a renderer and a parser. All pure.

Used by `parse_reply.py` and `render_request.py`. Configurations in the log hold the names.
"""

from collections.abc import Mapping

from everlog.actors.formats.calling_format import CallingFormat
from everlog.actors.formats.native_format import NativeFormat
from everlog.actors.formats.schema_format import SchemaFormat
from everlog.actors.formats.text_format import TextFormat
from everlog.actors.formats.turn_marks import MARKS

CALLING_FORMATS: Mapping[str, CallingFormat] = {
    "native": NativeFormat(),
    "schema": SchemaFormat(),
    **{name: TextFormat(marks) for name, marks in MARKS.items()},
}
"""Calling formats by the value of `AgentConfigured.calling`."""
