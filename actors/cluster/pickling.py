"""Send a user's functions to another process by value, so that their source file is needed only here.

Used by `RayRuntime` for the capabilities of its callers, and by the host actors, which unpack them.

Ray's `cloudpickle`, which is an argument here, turns code into bytes. It does not know msgspec: Structs that are in no
module (the arguments of a function) or in a user's file are taken apart into their fields.

Packed functions carry a digest of their code, so that a host that has the functions already can tell whether the code
was edited. Two processes give the same code the same digest, except for sets of things other than text; a new digest
only costs another activation.
"""

import re
import sys
from hashlib import sha256
from io import BytesIO
from pickle import loads
from types import CodeType, ModuleType
from typing import Any

import msgspec

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.functions.function_text import said
from everlog.actors.functions.user_modules import is_of_user
from everlog.events import BadInput

_PACKING = (Exception, SystemExit)
"""Exceptions that a user's objects may raise while they are pickled; all of them are errors of the user."""
_ELSEWHERE = (BaseException,)
"""Exceptions that a user's code may raise in a process without a keyboard: KeyboardInterrupt is the user's error
there.
"""

_TRACKER = re.compile("[0-9a-f]{32}")
"""Id that cloudpickle gives a class, another one in each process."""
_DEPTH_MAX = 5
"""Depth, in cloudpickle's result for a function or class, of the values of names and attributes."""


class PickledCapabilities(SessionCapabilities, frozen=True, kw_only=True):
    """Capabilities as bytes: a process can pass them on without being able to load them."""

    data: bytes


def pack(given: SessionCapabilities | None, cloud: ModuleType) -> SessionCapabilities | None:
    """Return capabilities for another process: `PickledCapabilities` if they contain functions.

    Raises BadInput for functions that cannot leave this process.
    """
    if given is None or isinstance(given, PickledCapabilities) or not given.tools:
        return given
    modules = [module for module in map(_module_of, given.tools) if module is not None]
    own = {module.__name__: module for module in modules if is_of_user(module)}
    known = cloud.list_registry_pickle_by_value()
    new = [module for name, module in own.items() if name not in known]
    for module in new:
        cloud.register_pickle_by_value(module)
    try:
        return PickledCapabilities(data=_bytes_of(given, _packer(cloud)), code_digest=_code_digest(given, cloud))
    except _PACKING as error:
        raise BadInput(
            f"The functions {', '.join(tool.name for tool in given.tools)} cannot be sent to the process that runs the "
            f"agent ({said(error)}): what they use must be made inside them, not around them. `--runtime local` runs "
            "them here."
        ) from error
    finally:
        for module in new:
            cloud.unregister_pickle_by_value(module)


def unpack(given: SessionCapabilities) -> SessionCapabilities:
    """Return capabilities as they were before `pack`; exceptions of their functions go to the model. Raises BadInput if
    this process cannot load them.
    """
    if not isinstance(given, PickledCapabilities):
        return given
    try:
        found: SessionCapabilities = loads(given.data)  # noqa: S301 - only callers in the cluster send this; a log never does
    except _ELSEWHERE as error:
        raise BadInput(
            f"The functions cannot be loaded where the agent runs ({said(error)}). Put what they "
            "need into their own file, install it on every machine, or use --runtime local."
        ) from error
    tools = tuple(msgspec.structs.replace(tool, faults=_ELSEWHERE) for tool in found.tools)
    return msgspec.structs.replace(found, tools=tools, code_digest=given.code_digest)


def _packer(cloud: ModuleType) -> Any:
    class Packer(cloud.Pickler):  # type: ignore[name-defined, misc]
        def reducer_override(self, found: Any) -> Any:
            if isinstance(found, type(msgspec.Struct)) and not _importable(found):
                return _struct, _parts(found)
            return super().reducer_override(found)

    return Packer


def _code_digest(given: SessionCapabilities, cloud: ModuleType) -> str:
    """Return a digest of the functions' code; empty if there are none."""

    class Marker(_packer(cloud)):  # type: ignore[misc]
        """Pickler whose output is never loaded, and is the same in every process."""

        def __init__(self, file: BytesIO) -> None:
            super().__init__(file)
            self._texts: dict[str | bytes, str | bytes] = {}
            """One object for each text: pickled bytes tell equal texts that are one object from those that are not,
            and code from a compiled cache shares others than code that was compiled now.
            """

        def reducer_override(self, found: Any) -> Any:
            if isinstance(found, CodeType):
                return _in_one_form(self.dispatch_table[CodeType](found), self._texts)
            made = super().reducer_override(found)
            if isinstance(found, type) and isinstance(made, tuple):
                made = (made[0], tuple(map(_untracked, made[1])), *made[2:])
            return _in_one_form(made, self._texts)

    return sha256(_bytes_of(given, Marker)).hexdigest() if given.tools else ""


def _untracked(found: Any) -> Any:
    return "" if isinstance(found, str) and _TRACKER.fullmatch(found) else found


def _in_one_form(found: Any, texts: dict[str | bytes, str | bytes], depth: int = _DEPTH_MAX) -> Any:
    """Return the value with its sets of text in an order that is the same in every process, and with one object for
    each text, from `texts`.
    """
    if isinstance(found, set | frozenset) and all(isinstance(one, str | bytes) for one in found):
        return [type(found).__name__, *(texts.setdefault(one, one) for one in sorted(found, key=repr))]
    if type(found) in (str, bytes):
        return texts.setdefault(found, found)
    if depth and type(found) is tuple:
        return tuple(_in_one_form(one, texts, depth - 1) for one in found)
    if depth and type(found) is dict:
        return {texts.setdefault(name, name): _in_one_form(value, texts, depth - 1) for name, value in found.items()}
    return found


def _bytes_of(given: SessionCapabilities, packer: Any) -> bytes:
    file = BytesIO()
    packer(file).dump(given)
    return file.getvalue()


def _module_of(tool: Any) -> ModuleType | None:
    return sys.modules.get(getattr(tool.function, "__module__", None) or "")


def _importable(struct: type) -> bool:
    module = sys.modules.get(struct.__module__)
    return module is not None and getattr(module, struct.__name__, None) is struct and not is_of_user(module)


def _parts(struct: type[msgspec.Struct]) -> tuple[Any, ...]:
    """Return the arguments from which `_struct` makes the same class."""
    fields = [(field.name, field.type, *_default(field)) for field in msgspec.structs.fields(struct)]
    names = {field[0] for field in fields}
    content = {
        name: value
        for name, value in vars(struct).items()
        if name == "__post_init__" or not (name.startswith("__") or name in names)
    }
    config = struct.__struct_config__
    options = {name: getattr(config, name) for name in _OPTIONS} | {"kw_only": not struct.__match_args__}
    return struct.__name__, struct.__module__, struct.__bases__, fields, content, options


_OPTIONS = ("frozen", "eq", "order", "array_like", "omit_defaults", "forbid_unknown_fields", "tag", "tag_field")


def _default(field: Any) -> tuple[Any, ...]:
    if field.default is not msgspec.NODEFAULT:
        return (field.default,)
    if field.default_factory is not msgspec.NODEFAULT:
        return (msgspec.field(default_factory=field.default_factory),)
    return ()


def _struct(name: str, module: str, bases: Any, fields: Any, content: Any, options: Any) -> type:
    return msgspec.defstruct(name, fields, module=module, bases=bases, namespace=content, **options)
