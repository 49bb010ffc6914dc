"""Stores: what one sets, the others see; who waits too long is told."""

import os
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

from cresset import distributed as dist
from cresset.distributed.liveness import Member
from cresset.distributed.store import wire


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def pair(request, tmp_path):
    """Two handles of one store."""
    if request.param == "hash":
        store = dist.HashStore()
        yield store, store.clone()
    elif request.param == "file":
        store = dist.FileStore(str(tmp_path / "store"))
        yield store, store.clone()
    else:
        held = dist.TCPStore("127.0.0.1", 0, is_master=True)
        client = dist.TCPStore("127.0.0.1", held.port)
        if request.param == "tcp":
            yield held, client
        else:
            yield dist.PrefixStore("group", held), dist.PrefixStore("group", client)
        client.close()
        held.close()


def test_what_one_sets_the_other_gets(pair):
    one, other = pair
    one.set("key", "value")
    assert other.get("key") == b"value"
    one.set("key", b"\0\xff")
    assert other.get("key") == b"\0\xff" and other.check(["key"]) and not other.check(["key", "none"])
    one.multi_set(["a", "b"], ["1", "2"])
    assert other.multi_get(["a", "b"]) == [b"1", b"2"]
    one.append("a", "x")
    assert other.get("a") == b"1x"
    assert one.delete_key("a") and not other.check(["a"]) and not one.delete_key("a")


def test_counters_add_up(pair):
    one, other = pair
    threads = [threading.Thread(target=lambda s=s: [s.add("count", 1) for _ in range(50)]) for s in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.add("count", 0) == 100 and other.get("count") == b"100"


def test_compare_set_changes_only_what_is_expected(pair):
    one, other = pair
    assert one.compare_set("key", "", "first") == b"first"
    assert other.compare_set("key", "other", "second") == b"first"
    assert other.compare_set("key", "first", "second") == b"second"
    assert one.get("key") == b"second"


def test_get_waits_for_a_key(pair):
    one, other = pair
    found = []
    thread = threading.Thread(target=lambda: found.append(other.get("late")))
    thread.start()
    time.sleep(0.05)
    one.set("late", "here")
    thread.join(10)
    assert found == [b"here"]


def test_who_waits_too_long_is_told_for_what(pair):
    _, other = pair
    other.set_timeout(timedelta(seconds=0.1))
    with pytest.raises(dist.DistStoreError, match="Wait timeout.*never"):
        other.get("never")
    with pytest.raises(dist.DistStoreError, match="Wait timeout.*never"):
        other.wait(["never"], timedelta(seconds=0.05))


def test_a_barrier_lets_all_through_together_and_can_be_used_again(pair):
    for _ in range(3):
        threads = [threading.Thread(target=lambda s=s: s.barrier("meet", 2, timedelta(seconds=10))) for s in pair]
        threads[0].start()
        time.sleep(0.02)
        assert threads[0].is_alive()
        threads[1].start()
        for thread in threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)


def test_queues_are_first_in_first_out(pair):
    one, other = pair
    one.queue_push("q", "1")
    one.queue_push("q", "2")
    assert other.queue_len("q") == 2
    assert [other.queue_pop("q"), other.queue_pop("q")] == [b"1", b"2"]
    with pytest.raises(dist.QueueEmptyError):
        other.queue_pop("q", block=False)


def test_wrong_types_are_named(pair):
    one, _ = pair
    with pytest.raises(TypeError, match="a value must be a str or bytes, not int"):
        one.set("key", 3)
    with pytest.raises(TypeError, match="timedelta"):
        one.set_timeout(3)
    with pytest.raises(TypeError, match="list"):
        one.wait("key")


def test_a_number_is_added_to_numbers_only(pair):
    one, _ = pair
    one.set("word", "x")
    with pytest.raises((ValueError, dist.DistStoreError), match="no number"):
        one.add("word", 1)


def test_a_port_in_use_is_an_error_that_says_so():
    held = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("127.0.0.1", held.port, is_master=True)
    held.close()


def test_nobody_at_the_address_is_an_error_that_says_so():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(dist.DistNetworkError, match=f"no store answered at 127.0.0.1:{port}"):
        dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=0.3))


def test_a_store_whose_holder_ended_is_lost():
    held = dist.TCPStore("127.0.0.1", 0, is_master=True)
    client = dist.TCPStore("127.0.0.1", held.port)
    held.close()
    with pytest.raises(dist.DistNetworkError, match="lost"):
        client.set("a", "b")


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\xff" * 64,
        wire.pack([b"nope", b"0", b"0"]),
        wire.pack([b"set"]),
        b"\x04\0\0\0\xff\xff\xff\xff",
    ],
)
def test_strangers_are_sent_away_and_the_others_go_on(garbage):
    held = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with socket.create_connection(("127.0.0.1", held.port), timeout=10) as stranger:
        stranger.sendall(garbage)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(100) == b""
    held.set("still", "here")
    assert held.get("still") == b"here"
    held.close()


def test_the_holder_waits_for_all_that_were_announced():
    with pytest.raises(dist.DistStoreError, match="1 of 2 have come"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=0.2))


def test_a_store_listens_at_its_own_address_alone():
    held = dist.TCPStore("127.0.0.1", 0, is_master=True)
    assert held._server.listener.getsockname() == ("127.0.0.1", held.port)
    held.close()


def test_a_member_that_ends_is_noticed_at_once_by_those_of_its_job():
    held = dist.TCPStore("127.0.0.1", 0, is_master=True)
    here, elsewhere = (Member(dist.PrefixStore(job, held), "0") for job in ("one", "two"))
    program = f"""
import os, cresset.distributed as d
from cresset.distributed.liveness import Member
Member(d.PrefixStore("one", d.TCPStore("127.0.0.1", {held.port})), "7")
os._exit(0)
"""
    path = os.pathsep.join([os.path.dirname(os.path.dirname(dist.__file__)) + "/..", os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, check=True, timeout=60)
    deadline = time.monotonic() + 5
    while not here.gone() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert here.gone() == {"7": f"on {socket.gethostname()} ended"} and elsewhere.gone() == {}
    late = Member(dist.PrefixStore("one", held), "8")
    time.sleep(0.1)
    assert list(late.gone()) == ["7"]
    for member in (here, elsewhere, late):
        member.leave()
    assert Member(dist.PrefixStore("one", held), "9").gone().keys() <= {"7"}  # those who left are not mourned
    held.close()


def test_a_file_store_of_something_else_is_refused(tmp_path):
    (tmp_path / "store").write_bytes(b"not a store at all")
    with pytest.raises(dist.DistStoreError, match="something else|middle"):
        dist.FileStore(str(tmp_path / "store")).get("key")


def test_the_last_user_takes_the_file_away(tmp_path):
    path = tmp_path / "store"
    stores = [dist.FileStore(str(path), 2) for _ in range(2)]
    stores.pop()
    assert path.exists()
    stores.pop()
    assert not path.exists()


@pytest.mark.parametrize("holder", ["threading", "os"])
def test_a_store_that_lives_until_the_interpreter_ends_says_nothing(holder):
    program = f"""
import {holder}
from cresset import distributed
{holder}.kept = distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
