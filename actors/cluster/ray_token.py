"""Keep the file of Ray's token closed to other users: the token is all that a program needs to run code in the cluster.

Used by `ray_api.connect`, before and after Ray makes the file. Imports no Ray. Ray finds its token in the order
RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH, ~/.ray/auth_token; only the last is Ray's own file, so only it is closed here.
"""

from contextlib import suppress
from pathlib import Path


def token_file() -> Path:
    """Return the file in which Ray keeps the token that it makes."""
    return Path.home() / ".ray" / "auth_token"


def close_token_file() -> None:
    """Make the folder of Ray's token with mode 0700 if it is missing, and take the permissions of other users away from
    an existing file.

    A file that cannot be changed is left as it is: it belongs to another user, who decides.
    """
    file = token_file()
    with suppress(OSError):
        file.parent.mkdir(mode=0o700)  # so that the file is never readable, not even before the next line
    with suppress(OSError):
        if file.stat().st_mode & 0o077:
            file.chmod(0o600)
