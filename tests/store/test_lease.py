"""One process writes a run; a dead one is replaced at once, a silent one after thirty seconds."""

from __future__ import annotations

import gc
import math
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from deemster.errors import LeaseError, StoreError
from deemster.store import lease as leasing
from deemster.store import open_store
from deemster.store.run_facts import RunEnd
from tests.store.make_runs import begun, execution, facts, samples

HOLDING = """
import sys, time
from deemster.store import open_store
store = open_store(sys.argv[1])
lease = store.lease("run-0")
print("held", flush=True)
sys.stdin.read()
"""


def holder(place):
    """A process that has leased `run-0`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def age(store, seconds, **other):
    """Age the lease of every run, or change its owner."""
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE runs SET heartbeat = heartbeat - ?", (float(seconds),))
        for column, value in other.items():
            rows.write(f"UPDATE runs SET {column} = ?", (value,))


def test_lease_of_run_in_progress_is_error_with_host_and_pid(place):
    with open_store(place) as store:
        begun(store)
    process = holder(place)
    try:
        with open_store(place) as store:
            owner = store.owner("run-0")
            assert (owner.pid, owner.alive) == (process.pid, True)
            with pytest.raises(LeaseError, match=f"being written by process {process.pid} on {owner.host}"):
                store.lease("run-0")
            with pytest.raises(LeaseError, match=f"being written by process {process.pid}"):
                store.remove("run-0")
    finally:
        process.communicate("")
    assert process.returncode == 0


@pytest.mark.parametrize("buried", [False, True])
def test_lease_of_killed_process_is_taken_over_at_once(place, buried):
    with open_store(place) as store:
        begun(store)
    process = holder(place)
    process.send_signal(signal.SIGKILL)
    if buried:
        process.communicate()
    else:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with open_store(place) as store:
        assert not store.owner("run-0").alive
        with store.lease("run-0") as lease:
            assert lease.is_held
            assert store.owner("run-0").pid == os.getpid()
        assert store.owner("run-0") is None
    process.communicate()


def test_reused_process_id_is_another_process(store):
    begun(store)
    host, pid, start = leasing.this_process()
    machine, _, ticks = start.rpartition(" ")
    assert not leasing.is_dead(host, pid, start)
    assert leasing.is_dead(host, pid, f"{machine} {int(ticks) - 1}")


def test_process_on_other_host_is_unknown():
    host, _, start = leasing.this_process()
    assert not leasing.is_dead("elsewhere", 2**22 + 1, start)
    ticks = start.rpartition(" ")[2]
    assert not leasing.is_dead(host, 2**22 + 1, f"another-boot pid:[1] {ticks}")


def test_without_start_time_only_process_id_is_checked():
    host, pid, _ = leasing.this_process()
    assert not leasing.is_dead(host, pid, None)
    assert leasing.is_dead(host, 2**22 + 1, None)
    assert not leasing.is_dead(host, 2**70, None)


def test_without_proc_there_is_no_start_time(monkeypatch):
    def absent(self, *_):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_bytes", absent)
    assert leasing.process_start(os.getpid()) is None


@pytest.mark.parametrize(("heartbeat_age_s", "is_refused"), [(25, True), (31, False)])
def test_lease_of_other_host_expires_after_thirty_seconds(store, heartbeat_age_s, is_refused):
    begun(store)
    age(store, heartbeat_age_s, owner_host="elsewhere", owner_pid=7)
    if is_refused:
        with pytest.raises(LeaseError, match=r"process 7 on elsewhere \(last heard of 2\d s ago\)"):
            store.lease("run-0")
    else:
        assert store.lease("run-0").is_held


@pytest.mark.parametrize(("ahead_s", "is_refused"), [(10, True), (40, False), (10**9, False), (math.inf, False)])
def test_heartbeat_in_the_future_locks_nobody_out(store, ahead_s, is_refused):
    begun(store)
    sql = f"UPDATE runs SET owner_host = 'elsewhere', token = 'x', heartbeat = {store.pool.database.now} + ?"
    with store.pool.write_transaction() as rows:
        rows.write(sql, (float(ahead_s),))
    assert store.owner("run-0").alive is is_refused
    if is_refused:
        with pytest.raises(LeaseError):
            store.lease("run-0")
    else:
        with store.lease("run-0") as lease:
            assert lease.is_held


def test_owner_that_lives_renews_a_heartbeat_in_the_future(store):
    lease = store.begin(facts(), samples(), cards=())
    with store.pool.write_transaction() as rows:
        rows.write("UPDATE runs SET heartbeat = heartbeat + 100000.0")
    lease.beat()
    assert store.owner(lease.run_id).alive


def test_lease_is_acquired_by_one_of_many(place):
    with open_store(place) as store:
        begun(store)
    stores = [open_store(place) for _ in range(4)]
    taken = []
    for store in stores:
        try:
            taken.append(store.lease("run-0"))
        except LeaseError:
            continue
    assert len(taken) == 1
    for store in stores:
        store.close()


def test_process_without_lease_cannot_write(store, place):
    name = begun(store)
    writer = store.writer(name)
    writer.add([execution(0)])
    writer.flush()
    age(store, 31, owner_host="elsewhere")
    with open_store(place) as other:
        other.lease(name)
        writer.add([execution(1)])
        with pytest.raises(LeaseError, match=f"`run-0` was taken over by process {os.getpid()} on"):
            writer.flush()
        with pytest.raises(LeaseError):
            writer.close()
        with pytest.raises(LeaseError, match="not leased here"):
            store.finish(name, RunEnd("complete"))
        assert [each.position for each in other.executions(name)] == [0]


def test_heartbeat_detects_lost_lease(store, place):
    name = begun(store)
    lease = store._leases[name]
    age(store, 10)
    lease.beat()
    assert store.owner(name).heartbeat_age_s < 5
    age(store, 31, owner_host="elsewhere")
    with open_store(place) as other:
        other.lease(name)
        lease.beat()
        assert lease.lost


def test_failed_heartbeat_is_not_a_lost_lease(store, monkeypatch):
    lease = store._leases[begun(store)]

    def refused():
        raise StoreError("busy")

    monkeypatch.setattr(lease._pool, "write_transaction", refused)
    lease.beat()
    assert not lease.lost
    lease.release()


def test_heartbeat_thread_runs_until_release(store, monkeypatch):
    monkeypatch.setattr(leasing, "HEARTBEAT_S", 0.01)
    name = begun(store)
    age(store, 25)
    lease = store._leases[name]
    while store.owner(name).heartbeat_age_s > 20:
        lease.thread.join(0.01)
    lease.release()
    lease.thread.join(30)
    assert not lease.thread.is_alive()


def test_release_waits_for_heartbeat_that_is_under_way(store, monkeypatch):
    under_way, finished = threading.Event(), []

    def beat(lease):
        under_way.set()
        while lease.is_held:
            store.owner("run-0")
        finished.extend(store.owner("run-0") for _ in range(50))

    monkeypatch.setattr(leasing, "HEARTBEAT_S", 0.001)
    monkeypatch.setattr(leasing.Lease, "beat", beat)
    lease = store._leases[begun(store)]
    under_way.wait()
    # A connection that is closed while the heartbeat uses it ends the process with a segmentation fault.
    lease.stop_heartbeat()
    assert len(finished) == 50
    assert not lease.thread.is_alive()


def test_garbage_collected_lease_ends_its_thread(store, monkeypatch):
    monkeypatch.setattr(leasing, "HEARTBEAT_S", 0.01)
    begun(store)
    lease = store._leases.pop("run-0")
    known, thread = weakref.ref(lease), lease.thread
    del lease
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()
    assert known() is None


def test_closed_store_releases_its_leases(place):
    with open_store(place) as store:
        begun(store)
    with open_store(place) as store:
        assert store.owner("run-0") is None
        assert store.lease("run-0").is_held


def test_lease_of_unknown_run_is_error(store):
    for act in (store.lease, store.owner, store.remove):
        with pytest.raises(StoreError, match="holds no run `nothing`"):
            act("nothing")
