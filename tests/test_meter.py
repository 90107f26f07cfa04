"""`PeakBytes` counts what is alive together, and nothing else."""

import socket
import sys

import torch

from ringlab.meter import PeakBytes, loopback_bytes


def test_tensors_alive_together_add_up():
    with PeakBytes() as meter:
        a = torch.zeros(100, dtype=torch.float64)
        b = torch.zeros(50)
    assert meter.peak == meter.live == 1000
    del a, b
    assert meter.live == 0


def test_what_died_before_does_not_count():
    with PeakBytes() as meter:
        for _ in range(5):
            x = torch.zeros(256)
            del x
    assert meter.peak == 1024


def test_views_and_in_place_results_count_once():
    with PeakBytes() as meter:
        x = torch.zeros(64)
        y = x.view(8, 8)[2:]
        x.add_(1)
        y.mul_(2)
    assert meter.peak == 256


def test_tensors_from_outside_do_not_count():
    outside = torch.zeros(1000)
    with PeakBytes() as meter:
        inside = outside[:10].clone()
        outside.add_(1)
    assert meter.peak == inside.nbytes


def test_meta_tensors_count_what_they_would_hold():
    with PeakBytes() as meter:
        torch.empty(2**40, dtype=torch.uint8, device="meta")
    assert meter.peak == 2**40


def test_a_storage_that_reuses_an_address_is_counted_anew():
    with PeakBytes() as meter:
        for size in (10, 20, 30):
            x = torch.zeros(size)
        assert meter.live == x.nbytes


def test_the_loopback_counter_sees_what_is_sent():
    before = loopback_bytes()
    if not sys.platform.startswith("linux"):
        assert before is None
        return
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as accepted,
    ):
        client.sendall(bytes(50_000))
        left = 50_000
        while left:
            left -= len(accepted.recv(left))
    assert loopback_bytes() - before >= 50_000
