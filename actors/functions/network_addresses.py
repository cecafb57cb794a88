"""Look up addresses, and decide which may be connected to: public ones only, in every notation.

Used by `http_function.py`, `http_transport.py` and `extras.py`.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from everlog.events import FunctionError

Address = IPv4Address | IPv6Address

HostResolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host for a port. Raises OSError."""

AddressFilter = Callable[[Address], bool]
"""Returns True if an address may be connected to."""

_UNICAST = IPv6Network("2000::/3")
"""The only publicly routed range of IPv6."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""NAT64: an IPv4 address in the last 32 bits."""
_NOT_PUBLIC = (
    IPv4Network("192.0.0.0/24"),  # for protocols
    IPv4Network("192.88.99.0/24"),  # retired 6to4 relays
    IPv4Network("168.63.129.16/32"),  # services of a cloud, reachable from its machines
    IPv6Network("3fff::/20"),  # for documents
)
"""Ranges that some versions of Python take for public although they are not."""


def is_public(address: Address) -> bool:
    """Return True for an address of the public network; an address that wraps an IPv4 address is judged by that one."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        inner = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST:
            return False
    return address.is_global and not (
        any(address in network for network in _NOT_PUBLIC)
        or address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )


async def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host from the machine's resolver, each once. Raise OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


async def check_addresses(host: str, port: int, resolve: HostResolver, admits: AddressFilter) -> Sequence[Address]:
    """Look up the addresses of a host once. Raise FunctionError if any of them may not be connected to, OSError."""
    addresses = [ip_address(text) for text in await resolve(host, port)]
    refused = [str(address) for address in addresses if not admits(address)]
    if refused:
        raise FunctionError(
            f"{host} is at {', '.join(refused)}, which is not an address of the public network: requests go to no "
            "other. Nothing was sent there."
        )
    if not addresses:
        raise OSError(f"{host} has no address")
    return addresses
