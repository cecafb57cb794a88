"""The JSON schema of replies in the `schema` calling format."""

import json

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.formats.schema_format import reply_schema
from everlog.store import MemoryStore

SCHEMAS = [tool.schema for tool in LocalSystem(MemoryStore()).tools.values()]


def test_each_function_has_a_shape_with_its_own_parameters() -> None:
    """Each function has one alternative: the monologue, then the function's name, then exactly its parameters."""
    shapes = reply_schema(SCHEMAS, 300)["anyOf"]
    assert len(shapes) == len(SCHEMAS)
    for shape, schema in zip(shapes, map(json.loads, SCHEMAS), strict=True):
        assert list(shape["properties"]) == shape["required"] == ["inner_thoughts", "function", "params"]
        assert shape["properties"]["inner_thoughts"]["maxLength"] == 300
        assert shape["properties"]["function"]["enum"] == [schema["name"]]
        assert shape["properties"]["params"]["properties"] == schema["parameters"]["properties"]
        assert shape["additionalProperties"] is shape["properties"]["params"]["additionalProperties"] is False


def test_an_agent_without_functions_can_only_think() -> None:
    """Without functions the schema allows a monologue only."""
    assert reply_schema([])["properties"]["function"] == {"type": "null"}
