"""The schema that a reply is held to."""

import json

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.formats.schema_format import reply_schema
from everlog.store import MemoryStore

SCHEMAS = [tool.schema for tool in LocalSystem(MemoryStore()).tools.values()]


def test_each_function_has_a_shape_with_its_own_parameters() -> None:
    """The monologue first, then a name that only goes with these parameters; nothing more."""
    shapes = reply_schema(SCHEMAS, 300)["anyOf"]
    assert len(shapes) == len(SCHEMAS)
    for shape, schema in zip(shapes, map(json.loads, SCHEMAS), strict=True):
        assert list(shape["properties"]) == shape["required"] == ["inner_thoughts", "function", "params"]
        assert shape["properties"]["inner_thoughts"]["maxLength"] == 300
        assert shape["properties"]["function"]["enum"] == [schema["name"]]
        assert shape["properties"]["params"]["properties"] == schema["parameters"]["properties"]
        assert shape["additionalProperties"] is shape["properties"]["params"]["additionalProperties"] is False


def test_an_agent_without_functions_can_only_think() -> None:
    """There is nothing to choose from."""
    assert reply_schema([])["properties"]["function"] == {"type": "null"}
