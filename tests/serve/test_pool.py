"""When a batch is sent: at once, unless requests come so fast that it will be full within the delay."""

import asyncio

from cresset.serve.pool import Pool
from cresset.serve.settings import ModelSettings


class Recorder:
    """A worker that keeps the batches it is given, and computes none of them."""

    retiring = False

    def __init__(self, pool):
        self.pool, self.sizes = pool, []
        pool.wanted = 1
        pool.became_idle(self)

    def send(self, jobs, now):
        self.sizes.append(len(jobs))

    def answer(self):
        self.pool.became_idle(self)


async def rounds(count=3):
    """Let the event loop do what is due."""
    for _ in range(count):
        await asyncio.sleep(0)


def played(scene, **settings):
    async def play():
        pool = Pool(ModelSettings("model", "model.pt2", batch=4, **settings))
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
        for _ in range(7):
            pool.submit([], b"")
            await rounds()
        assert worker.sizes == [1]
        worker.answer()
        assert worker.sizes == [1, 4]
        worker.answer()
        assert worker.sizes == [1, 4, 2]

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
