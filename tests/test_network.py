"""The whole suite runs with no network but loopback; here is the proof that more would be noticed."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys

import pytest

from tests.conftest import reached_out

# Addresses reserved for documentation (RFC 5737, RFC 3849) never answer.
AWAY = ("192.0.2.1", 9)
TALKING = "import socket; socket.create_connection(('192.0.2.1', 9), timeout=1)"


def test_connection_to_another_machine_is_refused_and_noted():
    with socket.socket() as plug, pytest.raises(OSError) as refused:
        plug.connect(AWAY)
    assert refused.value.errno == errno.ENETUNREACH
    assert reached_out() == ["socket.connect 192.0.2.1"]


def test_datagram_to_another_machine_is_refused_and_noted():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plug, pytest.raises(OSError):
        plug.sendto(b"x", AWAY)
    assert reached_out() == ["socket.sendto 192.0.2.1"]


@pytest.mark.parametrize("name", ["example.org", b"example.org", "127.0.0.1.example.org"])
def test_host_name_is_not_resolved(name):
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo(name, 80)
    assert len(reached_out()) == 1


def test_invalid_host_name_may_be_resolved():
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("models.invalid", 80)
    assert reached_out() == []


def test_another_process_has_no_network_either():
    done = subprocess.run([sys.executable, "-c", TALKING], capture_output=True, text=True, check=False)
    assert "There is no network in tests" in done.stderr
    assert reached_out() == ["socket.getaddrinfo 192.0.2.1"]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_loopback_connections_are_allowed(tmp_path, family):
    place = ("127.0.0.1", 0) if family == socket.AF_INET else os.fspath(tmp_path / "s")
    with socket.socket(family) as ear, socket.socket(family) as mouth:
        ear.bind(place)
        ear.listen()
        mouth.connect(ear.getsockname())
    assert reached_out() == []


@pytest.mark.xfail(raises=pytest.fail.Exception, reason="the proof that a test which swallows the refusal fails")
def test_test_that_uses_network_silently_fails():
    with pytest.raises(OSError), socket.socket() as plug:
        plug.connect(AWAY)
