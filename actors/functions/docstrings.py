"""Read the description of a function, and of each parameter, from a docstring. Pure.

Used by `tools.py`. Three styles are read: Google's (`Args:`), NumPy's (`Parameters` over a line of dashes) and
reStructuredText's (`:param city:`). The texts go into the schema, which is hashed and recorded in the log: the same
docstring must always give the same text. Therefore the reader is here, and not in a library.
"""

import re
from collections.abc import Iterator, Sequence

_GOOGLE = re.compile(r"^(?:Args|Arguments):[ ]*$", re.MULTILINE)
_GOOGLE_END = re.compile(r"^(?:Returns|Yields|Raises|Examples?|Notes?):", re.MULTILINE)
_GOOGLE_ENTRY = re.compile(r"\s{0,8}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_NUMPY = re.compile(r"^(?:Other )?Parameters[ ]*\n-{3,}[ ]*$", re.MULTILINE)
_NUMPY_SECTION = re.compile(r"^[A-Z][A-Za-z ]*\n-{3,}[ ]*$", re.MULTILINE)
_NUMPY_ENTRY = re.compile(r"(\w+(?:,\s*\w+)*)\s*(?::.*)?$")
_FIELD = re.compile(r"^:(\w+)([^:\n]*):[ ]*", re.MULTILINE)
_PARAMETER_FIELDS = ("param", "parameter", "arg", "argument", "key", "keyword")
_ARGS_INDENT = 4


def read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Return the description of the function, and of each parameter by name. `doc` is without common indentation."""
    if match := _NUMPY.search(doc):
        first = _NUMPY_SECTION.search(doc)
        return _flat(doc[: first.start() if first else match.start()]), dict(_numpy(doc))
    if any(field[1] in _PARAMETER_FIELDS for field in _FIELD.finditer(doc)):
        first = _FIELD.search(doc)
        return _flat(doc[: first.start() if first else None]), dict(_fields(doc))
    match = _GOOGLE.search(doc)
    description = doc[: match.start()] if match else doc
    described = _google(doc[match.end() :]) if match else {}
    return _flat(re.split(r"^Returns:", description, maxsplit=1, flags=re.MULTILINE)[0]), described


def _google(args: str) -> dict[str, str]:
    """Read the lines under `Args:`: a name at the smallest indentation, and further lines that belong to it."""
    end = _GOOGLE_END.search(args)
    described: dict[str, str] = {}
    current = ""
    for line in args[: end.start() if end else None].splitlines():
        match = _GOOGLE_ENTRY.match(line)
        if match and (len(line) - len(line.lstrip())) <= _ARGS_INDENT:
            current = match[1]
            described[current] = match[2].strip()
        elif current and line.strip():
            described[current] += " " + line.strip()
    return described


def _numpy(doc: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters under each `Parameters`: a name at the left, and its description in the lines below it."""
    for match in _NUMPY.finditer(doc):
        end = _NUMPY_SECTION.search(doc, match.end())
        names: Sequence[str] = ()
        text: list[str] = []
        for line in [*doc[match.end() : end.start() if end else None].splitlines(), "end"]:
            if line[:1].isspace() or not line:
                text.append(line)
                continue
            yield from ((name, _flat(" ".join(text))) for name in names if any(text))
            entry = _NUMPY_ENTRY.match(line)
            names, text = re.split(r",\s*", entry[1]) if entry else (), []


def _fields(doc: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a list of fields: each ends at the next field, or at an empty line."""
    fields = list(_FIELD.finditer(doc))
    for field, following in zip(fields, [*fields[1:], None], strict=True):
        words = field[2].split()
        if field[1] in _PARAMETER_FIELDS and words:
            body = doc[field.end() : following.start() if following else None]
            yield words[-1], _flat(body.split("\n\n", 1)[0])


def _flat(text: str) -> str:
    return " ".join(text.split())
