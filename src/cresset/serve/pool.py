"""The workers of one version of a model: a bounded queue, batches, timeouts, and new workers for those that died."""

import asyncio
import collections
import math

from . import frames
from .cost import Cost
from .logs import log
from .metrics import Measures
from .problems import Refused
from .process import Worker
from .threads import Threads

TICK = 0.001  # seconds by which the event loop may wake late: a delay is what a request waits at most
SOON = 0.0002  # seconds before and after the expected end of a batch in which its worker gets the next one

# Note [When a batch is held back]
# A batch forms by itself while the workers compute: what has arrived goes together. An idle worker that waits for more
# saves the part of a batch's time that does not depend on its size (cost.py), once, and loses the time it waits: it
# waits only where the batch will be full sooner than that, and within the delay of its first request. So the delay is
# what a request is held back at most, and few are held back at all. Waiting for longer took a quarter of the rate that
# a small model carries, just when there was something to catch up with.
# How fast they came is no promise that more will come: a client that asks again once it is answered never fills a
# batch. Each time one was held back in vain, twice as many go at once before the next is held back.

# Note [The next batch is there already]
# A worker that has to ask for its next batch stands still until the front has time for it; with small batches that was
# a third of its time. So a batch that is full, which waiting cannot make better, is sent while the worker computes the
# one before; and what waits is sent when that one should end soon, as it takes no longer then than to ask. That counts
# most where batches gain little: a pause of 0.15 ms with each batch of a model that takes 0.4 ms for each request made
# batches of five out of batches of two at four fifths of the capacity, and the slowest of a hundred requests take 6 ms
# instead of 2. With several workers requests stay in the queue: another may be free first.

# Note [Workers share what waits]
# The first of several workers that is free takes its share of what waits and leaves the others theirs: they are free
# soon after, and two halves of a batch by two workers end sooner than the whole by one. But no share is so small that
# the part of its time that does not depend on its size counts (cost.py): that would cost rate. Where batches gain
# little, taking all of it made the slowest of a hundred requests twice as slow (four workers at half of their capacity:
# 4.4 ms instead of 2.2 by simulation).

# Note [A worker that dies]
# Its batch comes back to the head of the queue, each request marked `alone`: if one of them killed the worker, it will
# kill the next one by itself, and the others get their answers. After `retries` further tries it is answered 503.


class Job:
    """A request in the queue: what the worker gets, and the future of its answer."""

    __slots__ = ("alone", "arrived", "body", "description", "future", "tries")

    def __init__(self, description, body, arrived, future):
        self.description, self.body, self.arrived, self.future = description, body, arrived, future
        self.alone, self.tries = False, 0


class Pool:
    """Queue and workers. Everything happens in the event loop, so nothing is locked."""

    def __init__(self, settings):
        self.settings, self.measures, self.threads = settings, Measures(), Threads(settings.threads)
        self.queue, self.idle, self.workers = collections.deque(), [], []
        self.wanted, self.metadata, self.closing, self.failures = 0, {}, False, 0
        self.pumping, self.timer, self.sweeper, self.restarter = False, None, None, None
        self.cost = Cost()
        self.stay = Cost()  # of a batch with its worker, from when the worker is free for it until it is answered
        self.rate = 0.0  # answers a second, lately: for Retry-After
        self.penalty = self.hasty = 0  # batches that go at once after one held back in vain: then, and still
        self.latest, self.gap = -math.inf, settings.delay / 1000  # when a request came; seconds between two, lately

    # ---- workers

    async def start(self):
        """Start the wanted workers; raises if the first of them cannot load the model."""
        self.sweeper = asyncio.get_running_loop().create_task(self.sweep())
        try:
            await self.scale(self.settings.workers)
        except BaseException:
            await self.stop(0)
            raise

    async def scale(self, count):
        """Change the number of workers, and wait until those that are new are ready."""
        self.wanted = count
        new = [await self.add_worker() for _ in range(count - len(self.active()))]
        for worker in sorted(self.active(), key=lambda worker: bool(worker.batches))[: len(self.active()) - count]:
            self.retire(worker)
        for worker in new:
            self.metadata = await worker.ready
        if new:
            log("ready", model=self.settings.name, version=self.settings.version, workers=len(self.active()))

    def active(self):
        return [worker for worker in self.workers if not worker.retiring]

    @property
    def ready_workers(self):
        return sum(worker.is_ready for worker in self.workers)

    async def add_worker(self):
        worker = Worker(self)
        self.workers.append(worker)
        await worker.start(self.threads.of_each(self.wanted))
        return worker

    def retire(self, worker):
        if worker in self.idle:
            self.idle.remove(worker)
        worker.retire()

    def became_idle(self, worker):
        if worker.retiring:
            worker.retire()
            return
        if not worker.batches:
            self.idle.append(worker)
        self.pump()

    def ended(self, worker):
        """A worker's line was closed: by us, or because its process died."""
        if worker in self.idle:
            self.idle.remove(worker)
        if worker in self.workers:
            self.workers.remove(worker)
        jobs = worker.batches.popleft() if worker.batches else []
        while worker.batches:  # it had not begun with these
            self.queue.extendleft(reversed(worker.batches.pop()))
        asyncio.get_running_loop().create_task(worker.reap())
        for job in reversed(jobs):
            if job.future.done():
                continue
            job.tries += 1
            job.alone = True
            if job.tries > self.settings.retries:
                self.fail(job, Refused(503, "the worker ended while it computed this request", [["retry-after", "1"]]))
            else:
                self.measures.retried += 1
                self.queue.appendleft(job)
        if self.closing or worker.retiring or not worker.ready.done() or len(self.active()) >= self.wanted:
            return
        self.failures += 1
        log(
            "worker ended",
            model=self.settings.name,
            version=self.settings.version,
            worker=worker.pid,
            requests=len(jobs),
        )
        if self.restarter is None or self.restarter.done():
            self.restarter = asyncio.get_running_loop().create_task(self.restart())

    async def restart(self):
        """Bring the workers back to the wanted number; wait longer each time that fails."""
        while not self.closing and len(self.active()) < self.wanted:
            if self.failures > 1:
                await asyncio.sleep(min(30.0, 0.05 * 2 ** min(self.failures, 12)))
            worker = await self.add_worker()
            self.measures.restarts += 1
            try:
                await worker.ready
            except RuntimeError as error:
                self.failures += 1
                log("worker failed", model=self.settings.name, version=self.settings.version, reason=str(error))

    # ---- requests

    def has_requests(self):
        """Whether some wait or are computed."""
        return bool(self.queue) or any(worker.batches for worker in self.workers)

    def submit(self, description, body):
        """Queue a request; the future of (status, content type, headers, body)."""
        if self.closing:
            raise Refused(503, "the model is being unloaded")
        if not self.wanted:
            raise Refused(503, f"model {self.settings.name} has no workers; scale it up first")
        if len(self.queue) >= self.settings.queue:
            wait = max(1, math.ceil(len(self.queue) / self.rate)) if self.rate else 1
            raise Refused(
                429,
                f"{len(self.queue)} requests wait for {self.settings.name} already",
                [["retry-after", str(min(wait, 3600))]],
            )
        loop = asyncio.get_running_loop()
        now = loop.time()
        # All pauses are alike, nobody came in time: one ends the holding back until about a batch has come after it.
        self.gap += (min(now - self.latest, self.settings.delay / 500) - self.gap) / self.settings.batch
        self.latest = now
        job = Job(description, body, now, loop.create_future())
        self.queue.append(job)
        if not self.pumping:  # once this round of the event loop has read all requests that are there
            self.pumping = True
            loop.call_soon(self.pump)
        return job.future

    def pump(self):
        """Give batches to idle workers: at once, unless waiting pays (Note [When a batch is held back])."""
        self.pumping = False
        now = asyncio.get_running_loop().time()
        while self.queue and (worker := self.next_worker(now)):
            due = self.queue[0].arrived + self.settings.delay / 1000 - TICK
            missing = self.settings.batch - len(self.queue)
            waits = missing > 0 and worker in self.idle and self.pays(missing * self.gap, due - now)
            if waits and not self.queue[0].alone:
                if not self.hasty:
                    if self.timer is None:
                        self.timer = asyncio.get_running_loop().call_at(due, self.wake)
                    return
                self.hasty -= 1
            if self.timer is not None:
                self.timer.cancel()
                self.held(in_vain=missing > 0)
            if jobs := self.take():
                if worker in self.idle:
                    self.idle.remove(worker)
                for job in jobs:
                    self.measures.queued += now - job.arrived
                self.measures.batch.add(len(jobs))
                worker.send(jobs, now)

    def pays(self, wait, left):
        """Whether to hold a batch back for so long, of the time that is left of its delay."""
        return wait < left and wait < self.cost.own and not self.closing

    def next_worker(self, now):
        """Who takes the next batch: an idle worker, or the only one if the batch is full or it is idle soon."""
        if self.idle:
            return self.idle[-1]
        if len(self.workers) != 1:
            return None
        (worker,) = self.workers
        if len(worker.batches) != 1 or worker.retiring:
            return None
        if len(self.queue) >= self.settings.batch:
            return worker
        end = worker.begun + self.stay.expected(len(worker.batches[0]))
        return worker if abs(end - now) < SOON else None

    def wake(self):
        self.held(in_vain=True)
        self.pump()

    def held(self, in_vain):
        """A batch that was held back goes: because it is full, or in vain."""
        self.timer = None
        self.hasty = self.penalty = min(2 * self.penalty + 1, 1023) if in_vain else 0

    def take(self):
        """The next batch: a worker's share of the oldest requests, or one alone."""
        share = max(len(self.queue) / max(1, len(self.active())), self.cost.thrifty)
        jobs, most = [], min(share, self.settings.batch)
        while self.queue and len(jobs) < most and not (jobs and self.queue[0].alone):
            job = self.queue.popleft()
            if not job.future.done():
                jobs.append(job)
                if job.alone:
                    break
        return jobs

    def answered(self, worker, header, body):
        jobs = worker.batches.popleft()
        self.failures = 0
        answers = header["answers"]
        self.measures.computed += header["seconds"]
        self.cost.add(len(jobs), header["seconds"])
        now = asyncio.get_running_loop().time()
        self.stay.add(len(jobs), now - worker.begun)
        worker.begun = now
        if "metrics" in header:
            self.measures.own.update(header["metrics"])
        for job, (status, kind, headers, _), part in zip(jobs, answers, frames.split(body, [a[-1] for a in answers])):
            if job.future.done():
                continue
            if kind is None:
                self.fail(job, Refused(status, part.decode(), headers))
            else:
                job.future.set_result((status, kind, headers, part))
        self.rate = 0.95 * self.rate + 0.05 * len(jobs) / max(1e-4, asyncio.get_running_loop().time() - jobs[0].arrived)
        self.became_idle(worker)

    @staticmethod
    def fail(job, problem):
        if not job.future.done():
            job.future.set_exception(problem)

    async def sweep(self):
        """Answer 504 to requests that took too long, and end the worker that is stuck with them."""
        timeout = self.settings.timeout
        while True:
            await asyncio.sleep(min(0.25, timeout / 4))
            now = asyncio.get_running_loop().time()
            while self.queue and now - self.queue[0].arrived > timeout:
                self.fail(self.queue.popleft(), Refused(504, f"the request waited for more than {timeout:g} s"))
            for worker in list(self.workers):
                if worker.batches and now > worker.deadline:
                    for job in worker.batches[0]:
                        self.fail(job, Refused(504, f"the model did not answer within {timeout:g} s"))
                    log("worker stuck", model=self.settings.name, version=self.settings.version, worker=worker.pid)
                    worker.kill()

    async def stop(self, grace):
        """Answer what is queued, for at most `grace` seconds, then end the workers."""
        self.closing = True
        self.pump()
        loop = asyncio.get_running_loop()
        end = loop.time() + grace
        while self.has_requests() and loop.time() < end:
            await asyncio.sleep(0.01)
        for task in (self.sweeper, self.restarter):
            if task is not None:
                task.cancel()
        while self.queue:
            self.fail(self.queue.popleft(), Refused(503, "the model was unloaded"))
        for worker in list(self.workers):
            for jobs in worker.batches:
                for job in jobs:
                    self.fail(job, Refused(503, "the model was unloaded"))
            worker.batches.clear()
            worker.retire()
            await worker.reap()
