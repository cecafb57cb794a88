"""Read the two files of defaults, and put their values where commands look for them.

A value is the first of: the option, the environment variable, `everlog.toml` in the store, `config.toml` of the user,
the built-in default. Used by `cli.command_run` for every command, by `everlog config` and by `everlog doctor`. Nothing
is parsed if no file exists, so that commands start fast.

A mistake in a file is an error of every command, never a value that is silently left out: a misspelt key would
otherwise be found only by its missing effect.
"""

import os
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from everlog.events import BadInput
from everlog.interfaces.defaults.default_keys import BY_NAME, KEYS, DefaultKey
from everlog.store import folder_of, is_bucket_url, read_whole, url_of

STORE_FILE = "everlog.toml"
"""Name of the file of defaults in a store."""
CONFIG_VARIABLE = "EVERLOG_CONFIG"
BUILT_IN_STORE = "~/.everlog"
FILE_BYTES_MAX = 100_000

_SECRET_KEY = re.compile(r"(?i)(^|_)(api_?key|key|token|secret|password)$")
_SECRET_VALUE = re.compile(r"(?i)\b(sk|pk|rk)-[\w-]{6,}|://[^/\s@]+:[^/\s@]+@|^bearer ")


class DefaultValue(NamedTuple):
    """Value of one key, and its origin."""

    key: DefaultKey
    value: str | Sequence[str] | None
    """None: no file and no variable has it, and the built-in default applies."""
    origin: str
    """`variable NAME`, the path of a file, or `built-in`."""


class DefaultValues(NamedTuple):
    """Values of all keys, and the files that were looked for."""

    values: Mapping[str, DefaultValue]
    user_file: Path | None
    """None: EVERLOG_CONFIG is set and empty, which means no file."""
    store_file: Path

    def of(self, name: str) -> str | None:
        """Return the value of a key that is one text; None if the built-in default applies."""
        value = self.values[name].value
        return value if isinstance(value, str) else None

    def listed(self, name: str) -> list[str]:
        """Return the texts of a key that is a list."""
        value = self.values[name].value
        return list(value) if value is not None and not isinstance(value, str) else []


def user_file(environment: Mapping[str, str]) -> Path | None:
    """Return the file of the user: EVERLOG_CONFIG, else `everlog/config.toml` in XDG_CONFIG_HOME or ~/.config.

    None if EVERLOG_CONFIG is set and empty. Raises BadInput if it names a file that does not exist.
    """
    named = environment.get(CONFIG_VARIABLE)
    if named is None:
        return Path(environment.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "everlog" / "config.toml"
    if not named:
        return None
    path = Path(named).expanduser()
    if not path.is_file():
        raise BadInput(
            f"{CONFIG_VARIABLE} names {named}, and there is no such file. Make it, or unset the variable; set it to "
            "nothing to use no file of the user."
        )
    return path


def read_defaults(given_store: str | None, environment: Mapping[str, str]) -> DefaultValues:
    """Return the value of every key. `given_store` is the value of --store. Raises BadInput for a mistake in a file."""
    users = user_file(environment)
    from_user = _read(users, "user") if users is not None else {}
    root = given_store or environment.get("EVERLOG_STORE") or from_user.get("store") or BUILT_IN_STORE
    stores = _folder(str(root)) / STORE_FILE
    from_store = _read(stores, "any")
    found = {}
    for key in KEYS:
        said = environment.get(key.variable, "") if key.variable else ""
        if said:
            found[key.name] = DefaultValue(key, said, f"variable {key.variable}")
        elif key.name in from_store:
            found[key.name] = DefaultValue(key, from_store[key.name], str(stores))
        elif key.name in from_user:
            found[key.name] = DefaultValue(key, from_user[key.name], str(users))
        else:
            found[key.name] = DefaultValue(key, None, "built-in")
    return DefaultValues(found, users, stores)


def store_folder(given: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the store: `given` (--store), else EVERLOG_STORE, else ~/.everlog. For the address of a
    bucket, that is the folder which stands for it on this machine. Raises BadInput.

    Inside of `applied`, EVERLOG_STORE is set if the user's file names a store.
    """
    return _folder(given or environment.get("EVERLOG_STORE") or BUILT_IN_STORE)


def _folder(place: str) -> Path:
    return folder_of(place) if is_bucket_url(place) else Path(place).expanduser()


def _read(path: Path, place: str) -> dict[str, str | list[str]]:
    """Return the keys and values of a file; none if it does not exist. `place`: `user`, or `any` for a store."""
    try:
        content = (read_whole(path) or b"") if url_of(path) else _beginning(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadInput(
            f"The file of defaults {path} cannot be read: {error.strerror}. Correct or remove it."
        ) from error
    if len(content) > FILE_BYTES_MAX:
        raise BadInput(f"The file of defaults {path} is longer than {FILE_BYTES_MAX:,} bytes. Shorten it.")
    import tomllib

    try:
        table = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"The file of defaults {path} is not TOML: {error}. Correct the file, or remove it.") from error
    return {name: _checked(path, place, name, value) for name, value in table.items()}


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _checked(path: Path, place: str, name: str, value: object) -> str | list[str]:
    """Return a value that its key allows. Raises BadInput, which never repeats a value that may be secret."""
    key = BY_NAME.get(name)
    if key is None and _SECRET_KEY.search(name):
        raise BadInput(
            f"{path} has the key {name!r}, which looks like a secret. Files of defaults hold no secrets: set the "
            "variable OPENAI_API_KEY, or name another variable as `key` of an endpoint in models.toml. Remove the line."
        )
    if key is None:
        raise _unknown(path, name)
    if key.scope == "user" and place != "user":
        raise BadInput(
            f"{path} has the key {name!r}, which only the file of the user may have: who can write to a store must not "
            "choose what code runs or where requests go. Move the line (`everlog config` names the file)."
        )
    values = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()]
    if key.is_list is not isinstance(value, list) or len(values) != (len(value) if isinstance(value, list) else 1):
        expected = "a list of texts" if key.is_list else "a text"
        raise BadInput(f"{path}: {name} is not {expected}, such as {_example(key)}. Correct the line.")
    if any(_SECRET_VALUE.search(one) for one in values):
        raise BadInput(
            f"{path}: the value of {name} looks like a secret. Files of defaults hold no secrets: keys come from "
            "variables. Remove it from the file."
        )
    if key.choices and value not in key.choices:
        raise BadInput(f"{path}: {name} is {value!r}; expected {' or '.join(key.choices)}. Correct the line.")
    if key.is_list and not key.of_files:
        return values
    if key.is_list:
        return [str((path.parent / Path(one).expanduser()).absolute()) for one in values]
    return values[0]


def _example(key: DefaultKey) -> str:
    if key.is_list:
        return f'{key.name} = ["{"~/tools.py" if key.of_files else "time"}"]'
    return f'{key.name} = "{(key.choices or (key.built_in,))[0]}"'


def _unknown(path: Path, name: str) -> BadInput:
    from difflib import get_close_matches

    near = get_close_matches(name.replace("-", "_"), BY_NAME, 1, 0.6)
    hint = f"Did you mean {near[0]!r}?" if near else f"Keys: {', '.join(BY_NAME)}."
    return BadInput(f"{path} has an unknown key {name!r}. {hint} Models are described in models.toml instead.")


@contextmanager
def applied(args: Namespace, environment: MutableMapping[str, str] = os.environ) -> Iterator[DefaultValues]:
    """Give a command its defaults: `args.defaults`, the arguments that were not given, and the variables of the keys.

    The variables are set while the block runs, because they are also read below this room and by processes that the
    command starts. Raises BadInput.
    """
    defaults = read_defaults(getattr(args, "store", None), environment)
    args.defaults = defaults
    if getattr(args, "command", "") == "chat" and args.name is None:
        args.name = defaults.of("agent") or "sam"
    for name in ("tools", "mcp", "a2a"):
        if not getattr(args, name, True):
            setattr(args, name, defaults.listed(name))
    files = {key.variable: defaults.of(key.name) for key in KEYS if key.variable}
    added = {name: value for name, value in files.items() if value is not None and not environment.get(name)}
    before = {name: environment.get(name) for name in added}
    environment.update(added)
    try:
        yield defaults
    finally:
        for name, value in before.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
