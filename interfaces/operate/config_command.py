"""`everlog config`: show the defaults of options, and where each comes from.

Called by `cli.command_run`. It reads the files of defaults itself, so that a mistake in one is reported here as in
every other command.
"""

import os
from argparse import Namespace

from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.defaults.default_files import DefaultValue, DefaultValues, read_defaults
from everlog.interfaces.output import json_shapes


def config(args: Namespace, _world: CommandEnvironment) -> int:
    """Run the command `config`."""
    defaults = read_defaults(args.store, os.environ)
    found = [_with_option(value, args) for value in defaults.values.values()]
    files = _files(defaults)
    if args.json:
        shape = [
            {"key": one.key.name, "value": one.value, "origin": one.origin, "built_in": one.key.built_in}
            for one in found
        ]
        print(json_shapes.line({"defaults": shape, "files": [{"file": file, "exists": made} for file, made in files]}))
        return 0
    texts = [(one.key.name, _text(one), one.origin) for one in found]
    first, second = (max(len(row[column]) for row in texts) for column in (0, 1))
    for name, value, origin in texts:
        print(sanitize(f"{name:{first}}  {value:{second}}  {origin}"))
    for file, made in files:
        print(sanitize(f"{'read' if made else 'not there'}: {file}"))
    return 0


def _with_option(value: DefaultValue, args: Namespace) -> DefaultValue:
    """Return the value with what the options of this very command say: --store and --log."""
    given = {"store": args.store, "log": args.log_level}.get(value.key.name)
    return value if given is None else DefaultValue(value.key, given, f"option {value.key.option}")


def _text(value: DefaultValue) -> str:
    if value.value is None:
        return value.key.built_in
    return value.value if isinstance(value.value, str) else " ".join(value.value)


def _files(defaults: DefaultValues) -> list[tuple[str, bool]]:
    """Return the files that were looked for, and True for each that exists."""
    found = [file for file in (defaults.store_file, defaults.user_file) if file is not None]
    return [(str(file), file.exists()) for file in found]
