"""Values of arguments."""

import argparse

import pytest

from everlog.interfaces.common import argument_values


@pytest.mark.parametrize("text", ["192.168.0.10", "10.0.0.5", "fd00::1"])
def test_an_address_of_a_network_is_accepted(text: str) -> None:
    """`--listen` takes the IP address of a network card."""
    assert argument_values.ip_address(text) == text


@pytest.mark.parametrize("text", ["127.0.0.1", "::1", "0.0.0.0", "::", "example.com", "", "10.0.0.5:80"])
def test_an_address_that_no_other_machine_can_use_is_refused(text: str) -> None:
    """Loopback, "all interfaces", a name and a port are refused: other machines are told this address."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not the IP address of this machine in its network"):
        argument_values.ip_address(text)
