"""Read from /proc at which addresses a process accepts connections."""

import ipaddress
import re
from pathlib import Path

LISTEN = "0A"
"""State of a socket that listens, in /proc/net/tcp."""


def listening(pid: int) -> set[str]:
    """Return the IP addresses at which a process listens for TCP; none if the process has ended."""
    own = set()
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                socket = re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink()))
            except FileNotFoundError:  # closed meanwhile
                continue
            if socket is not None:
                own.add(socket[1])
        lines = [line.split() for name in ("tcp", "tcp6")
                 for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]  # fmt: skip
    except FileNotFoundError:
        return set()
    return {_address(fields[1].partition(":")[0]) for fields in lines if fields[3] == LISTEN and fields[9] in own}


def _address(digits: str) -> str:
    """Return an address of /proc/net/tcp: words of 32 bits in the byte order of the machine, as hexadecimal digits."""
    words = bytes.fromhex(digits)
    packed = b"".join(words[start : start + 4][::-1] for start in range(0, len(words), 4))
    found = ipaddress.ip_address(packed)
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)
