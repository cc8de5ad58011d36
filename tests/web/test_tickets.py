from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from pollux.web.tickets import LIFETIME, Tickets


def test_a_ticket_works_once() -> None:
    used: list[str] = []
    tickets = Tickets(used.append)
    ticket = tickets.issue()
    assert tickets.redeem(ticket)
    assert not tickets.redeem(ticket)
    assert used == [ticket]


def test_a_ticket_works_for_five_minutes() -> None:
    now = 100.0
    tickets = Tickets(seconds=lambda: now)
    in_time, late = tickets.issue(), tickets.issue()
    now += LIFETIME - 1
    assert tickets.redeem(in_time)
    now += 1
    assert not tickets.redeem(late)


def test_old_tickets_are_forgotten() -> None:
    now = 0.0
    tickets = Tickets(seconds=lambda: now)
    for _ in range(100):
        tickets.issue()
        now += LIFETIME
    assert len(tickets._deadlines) == 1


def test_an_invented_ticket_is_refused() -> None:
    tickets = Tickets()
    ticket = tickets.issue()
    for invented in ("", ticket[:-1], ticket + "=", ticket.swapcase(), "\udcff", "ü"):
        assert not tickets.redeem(invented)
    assert tickets.redeem(ticket)


@pytest.fixture
def _busy_threads() -> Iterator[None]:
    """Let threads take turns after every few instructions, so that a gap between a look and a change is met."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_busy_threads")
def test_of_many_threads_one_gets_in() -> None:
    tickets = Tickets()
    n_threads = 8
    for _ in range(50):
        ticket, results = tickets.issue(), list[bool]()
        barrier = threading.Barrier(n_threads)

        def redeem(ticket: str = ticket, results: list[bool] = results, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            results.append(tickets.redeem(ticket))

        threads = [threading.Thread(target=redeem) for _ in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False] * (n_threads - 1) + [True]
