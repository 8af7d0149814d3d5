"""Which network addresses are this machine's own."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that host."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
