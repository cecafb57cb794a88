"""Allowed hosts of http_request: spellings of names and forms of addresses."""

from ipaddress import ip_address

import pytest

from everlog.actors.functions.allowed_hosts import RequestTarget, hosts, target
from everlog.actors.functions.network_addresses import is_public
from everlog.events import BadInput, FunctionError

ALLOWED = hosts(["shop.test", "api.test:8080", "[2001:db8::1]", "93.184.216.34", "127.0.0.1", "xn--caf-dma.test"])


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("http://shop.test", RequestTarget("http", "shop.test", 80, "/")),
        ("HTTPS://Shop.TEST./a?b=c#d", RequestTarget("https", "shop.test", 443, "/a?b=c")),
        ("http://shop.test:443/", RequestTarget("http", "shop.test", 443, "/")),
        ("http://api.test:8080?q", RequestTarget("http", "api.test", 8080, "/?q")),
        ("http://[2001:0db8:0::1]/", RequestTarget("http", "2001:db8::1", 80, "/")),
        ("https://93.184.216.34/", RequestTarget("https", "93.184.216.34", 443, "/")),
    ],
)
def test_allowed_urls(url: str, where: RequestTarget) -> None:
    """A URL of an allowed host is accepted in any spelling of the host's name."""
    assert target(url, ALLOWED) == where


@pytest.mark.parametrize(
    "url",
    [
        "http://other.test/", "http://sub.shop.test/", "http://shop.test.evil.test/", "http://evilshop.test/",
        "http://shop.test:8080/",
        "http://api.test/", "http://api.test:80/", "http://shop.test:0/", "http://shop.test:99999/",
        "http://shop.test:x/",
        "http://shop.test@evil.test/", "http://evil.test@shop.test/", "http://a:b@shop.test/", "http://@shop.test/",
        "http://evil.test\\@shop.test/", "http://shop.test\\.evil.test/", "http://evil.test#@shop.test/",
        "http://evil.test?@shop.test/", "http:///shop.test/", "//shop.test/", "shop.test", "file:///etc/passwd",
        "ftp://shop.test/", "gopher://shop.test/", "http://shop.test/\r\nX: y", "http://shop.test/ x",
        "\thttp://shop.test/",
        "http://shop.test\t/", "http://shop\N{FULLWIDTH FULL STOP}test/",
        "http://caf\N{LATIN SMALL LETTER E WITH ACUTE}.test/",
        "http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://0177.0.0.1/", "http://127.0.0.01/",
        "http://0/",
        "http://0x7f000001/", "http://127.0.0.1.:80/x", "http://[::ffff:127.0.0.1]/", "http://[::1]/",
        "http://[shop.test]/",
        "http://[2001:db8::1%25eth0]/", "http://shop.test/" + "x" * 5000, "http://-shop.test/",
        "http://shop..test/", "",
    ],
)  # fmt: skip
def test_refused_urls(url: str) -> None:
    """Another host, port, scheme or disguised spelling is refused with a plain text."""
    with pytest.raises(FunctionError):
        target(url, ALLOWED)


@pytest.mark.parametrize(
    "entry",
    [
        "", " ", "http://shop.test", "shop.test/", "shop.test/x", "user@shop.test", "shop.test:", "shop.test:0",
        "shop.test:x",
        "shop.test:70000", "*.test", "*", "0x7f.1", "2130706433", "127.1", "shop test", "shop.test?", "shop.test#",
        "::1",
        "[::1", "a\\b", "shop.test\n",
    ],
)  # fmt: skip
def test_an_allow_list_has_hosts_and_ports_only(entry: str) -> None:
    """An entry that is neither HOST nor HOST:PORT is refused, with an example of both."""
    with pytest.raises(BadInput, match="HOST:PORT"):
        hosts([entry])


def test_a_host_may_be_given_with_several_ports() -> None:
    """The ports of several entries for one host are combined, in any spelling of the host."""
    assert hosts(["A.test", "a.test:8080", "a.test.:81"]) == {"a.test": frozenset({80, 443, 8080, 81})}


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"]
)
def test_public_addresses(address: str) -> None:
    """Public addresses are accepted, also as IPv4 addresses inside IPv6 ones."""
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1",
        "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "2002:7f00:1::", "2002:a00:1::1",
        "2002:a9fe:a9fe::",
        "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::127.0.0.1", "64:ff9b:1::8.8.8.8",
        "2001::1", "2001:db8::1", "100::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
        "2606:4700::1111%eth0",
        "fec0::1", "ff02::1", "ff0e::1", "4000::1",
        "192.0.0.8", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.88.99.1", "168.63.129.16", "::ffff:168.63.129.16",
        "2002:a83f:8110::1", "3fff::1", "3fff:fff:ffff::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    """Private, loopback, link-local, shared, multicast, reserved, unspecified and documentation addresses are refused,
    also inside any form of IPv6 address.
    """
    assert not is_public(ip_address(address))
