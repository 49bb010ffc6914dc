"""When a batch is sent: at once, unless requests come so fast that waiting pays, within the delay."""

import asyncio
import collections
import math
import types

from cresset.serve.pool import Pool
from cresset.serve.settings import ModelSettings


class Recorder:
    """A worker that keeps the batches it is given, and computes none of them."""

    retiring, begun = False, math.inf

    def __init__(self, pool):
        self.pool, self.sizes, self.batches = pool, [], collections.deque()
        pool.wanted += 1
        pool.workers.append(self)
        pool.became_idle(self)

    def send(self, jobs, now):
        self.batches.append(jobs)
        self.sizes.append(len(jobs))

    def answer(self):
        self.batches.popleft()
        self.pool.became_idle(self)


async def rounds(count=3):
    """Let the event loop do what is due."""
    for _ in range(count):
        await asyncio.sleep(0)


def played(scene, **settings):
    async def play():
        pool = Pool(ModelSettings("model", "model.pt2", batch=4, **settings))
        pool.cost = types.SimpleNamespace(
            own=math.inf, thrifty=math.inf
        )  # a batch costs much, whatever its size: waiting for more pays
        await scene(pool, Recorder(pool))

    asyncio.run(play())


async def hurry(pool, worker):
    """Forty requests without a pause, answered; the pool has seen how fast they come."""
    for _ in range(10):
        for _ in range(4):
            pool.submit([], b"")
        await rounds()
        worker.answer()
    assert worker.sizes == [4] * 10
    worker.sizes.clear()


def test_a_request_that_comes_alone_is_not_held_back():
    async def scene(pool, worker):
        for count in range(1, 4):
            pool.submit([], b"")
            await rounds()
            assert worker.sizes == [1] * count
            worker.answer()
            await asyncio.sleep(0.02)

    played(scene, delay=500)


def test_what_arrives_while_the_worker_computes_goes_together():
    async def scene(pool, worker):
        for _ in range(4):
            pool.submit([], b"")
            await rounds()
        assert worker.sizes == [1]
        worker.answer()
        assert worker.sizes == [1, 3]

    played(scene)


def test_what_waits_is_sent_shortly_before_the_worker_should_be_idle(monkeypatch):
    async def scene(pool, worker):
        for _ in range(2):
            pool.submit([], b"")
            await rounds()
        assert worker.sizes == [1]
        begun = asyncio.get_running_loop().time()
        for worker.begun, seconds in ((begun, 100), (begun - 100, 1)):  # it takes longer, or nobody knows how long
            pool.stay = types.SimpleNamespace(expected=lambda size, seconds=seconds: seconds)
            pool.pump()
            assert worker.sizes == [1]
        worker.begun = begun
        pool.pump()
        assert worker.sizes == [1, 1]
        pool.submit([], b"")
        await rounds()
        assert worker.sizes == [1, 1]  # there is one already

    monkeypatch.setattr("cresset.serve.pool.SOON", 50.0)
    played(scene)


def test_with_several_workers_what_waits_stays_in_the_queue(monkeypatch):
    async def scene(pool, worker):
        other = Recorder(pool)
        pool.stay = types.SimpleNamespace(expected=lambda size: 0.0)
        worker.begun = other.begun = asyncio.get_running_loop().time()
        for _ in range(3):
            pool.submit([], b"")
            await rounds()
        assert sorted(worker.sizes + other.sizes) == [1, 1] and len(pool.queue) == 1

    monkeypatch.setattr("cresset.serve.pool.SOON", 50.0)
    played(scene)


def test_requests_that_come_fast_are_held_back_until_the_batch_is_full():
    async def scene(pool, worker):
        await hurry(pool, worker)
        for _ in range(3):
            pool.submit([], b"")
            await rounds()
        assert worker.sizes == []
        pool.submit([], b"")
        await rounds()
        assert worker.sizes == [4]

    played(scene, delay=60_000)


def test_nothing_is_held_back_for_longer_than_a_batch_of_its_own_costs():
    async def scene(pool, worker):
        await hurry(pool, worker)
        for own, sizes in ((0.02, [1]), (0.04, [])):  # three are missing
            pool.cost.own = own
            pool.submit([], b"")
            pool.gap = 0.01
            await rounds()
            assert worker.sizes == sizes
            if sizes:
                worker.answer()
                worker.sizes.clear()

    played(scene, delay=60_000)


def test_what_is_held_back_goes_when_the_delay_is_over():
    async def scene(pool, worker):
        await hurry(pool, worker)
        loop = asyncio.get_running_loop()
        pool.submit([], b"")
        start = loop.time()
        await rounds()
        assert worker.sizes == []
        while not worker.sizes:
            assert loop.time() < start + 20
            await asyncio.sleep(0.001)
        assert worker.sizes == [1] and loop.time() - start >= 0.19

    played(scene, delay=200)


def test_a_pause_ends_the_holding_back():
    async def scene(pool, worker):
        await hurry(pool, worker)
        await asyncio.sleep(0.1)
        pool.submit([], b"")
        await rounds()
        assert worker.sizes == [1]

    played(scene, delay=20)


def test_a_client_that_waits_for_its_answers_is_hardly_ever_held_back():
    async def scene(pool, worker):
        await hurry(pool, worker)
        loop, held = asyncio.get_running_loop(), 0
        for _ in range(200):
            start = loop.time()
            pool.gap = 0.0  # as fast as can be, so far
            pool.submit([], b"")
            while not worker.batches:
                await asyncio.sleep(0)
            held += loop.time() - start > 0.002
            worker.answer()
        assert worker.sizes == [1] * 200 and 1 <= held <= 12

    played(scene, delay=5)


def test_a_full_batch_is_sent_while_the_only_worker_computes_the_one_before():
    async def scene(pool, worker):
        for _ in range(12):
            pool.submit([], b"")
        await rounds()
        assert worker.sizes == [4, 4] and len(pool.queue) == 4
        worker.answer()
        assert worker.sizes == [4, 4, 4]
        for _ in range(3):
            pool.submit([], b"")
            await rounds()
        worker.answer()
        assert worker.sizes == [4, 4, 4] and len(pool.queue) == 3
        worker.answer()
        assert worker.sizes == [4, 4, 4, 3]

    played(scene)


def test_with_two_workers_a_full_batch_waits_for_the_one_that_is_free_first():
    async def scene(pool, worker):
        other = Recorder(pool)
        for _ in range(12):
            pool.submit([], b"")
        await rounds()
        assert worker.sizes == other.sizes == [4] and len(pool.queue) == 4
        other.answer()
        assert other.sizes == [4, 4]

    played(scene)


def test_workers_share_what_waits_where_batches_gain_little():
    async def scene(pool, worker):
        others = [Recorder(pool) for _ in range(2)]
        pool.cost = types.SimpleNamespace(own=0.0, thrifty=0.0)
        for _ in range(7):
            pool.submit([], b"")
        await rounds()
        assert sorted([worker.sizes, *(other.sizes for other in others)]) == [[1], [2], [3]] and len(pool.queue) == 1
        for _ in range(4):
            pool.submit([], b"")
        await rounds()
        worker.answer()
        assert worker.sizes[1:] == [2]
        pool.cost.thrifty = 1.5
        others[0].answer()
        assert others[0].sizes[1:] == [2] and len(pool.queue) == 1

    played(scene)


def test_what_a_worker_that_died_had_not_begun_goes_on_in_its_order():
    async def scene(pool, worker):
        for number in range(9):
            pool.submit([number], b"")
        await rounds()
        assert worker.sizes == [4, 4]
        pool.closing = True  # no new worker
        worker.reap = rounds
        pool.ended(worker)
        assert [job.description for job in pool.queue] == [[number] for number in range(9)]
        assert [job.alone for job in pool.queue] == [True] * 4 + [False] * 5
        assert [job.tries for job in pool.queue] == [1] * 4 + [0] * 5

    played(scene)
