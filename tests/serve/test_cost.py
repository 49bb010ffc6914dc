"""What is known of the cost of a batch, and how many threads a worker has."""

import math

from cresset.serve.cost import Cost
from cresset.serve.threads import Threads


def test_the_part_of_a_batch_that_does_not_depend_on_its_size_is_found():
    cost = Cost()
    assert cost.own == cost.thrifty == 0.0
    for number in range(300):
        size = 1 + number * 7 % 32
        cost.add(size, 0.004 + 0.0005 * size)
    assert math.isclose(cost.own, 0.004, rel_tol=0.1)
    assert math.isclose(cost.thrifty, 32, rel_tol=0.2)  # 0.004 of 0.02


def test_a_model_that_gains_nothing_from_batches_has_no_such_part():
    cost = Cost()
    for number in range(300):
        size = 1 + number * 7 % 32
        cost.add(size, 0.0004 * size)
    assert cost.own < 0.0001


def test_the_time_of_a_batch_is_expected_by_its_size():
    cost = Cost()
    assert cost.expected(5) == 0.0
    for number in range(300):
        size = 1 + number * 7 % 32
        cost.add(size, 0.004 + 0.0005 * size)
    assert math.isclose(cost.expected(1), 0.0045, rel_tol=0.1) and math.isclose(cost.expected(32), 0.02, rel_tol=0.1)


def test_batches_of_one_size_tell_nothing_about_it():
    cost = Cost()
    for _ in range(300):
        cost.add(8, 0.01)
    assert cost.own < 1e-9


def test_what_is_known_follows_the_model():
    cost = Cost()
    for own in (0.001, 0.009):
        for number in range(600):
            size = 1 + number * 7 % 32
            cost.add(size, own + 0.0005 * size)
        assert math.isclose(cost.own, own, rel_tol=0.1)


class Watched(Threads):
    """With clocks that the test turns."""

    now = used = 0.0

    def clocks(self):
        return self.now, self.used

    def spend(self, seconds, share):
        self.now += seconds
        self.used += seconds * share


def test_workers_have_all_processors_until_the_front_is_busy():
    threads = Watched(0)
    threads.processors = 8
    assert [threads.of_each(workers) for workers in (1, 2, 3, 20)] == [8, 4, 2, 1]
    threads.spend(0.1, 0.1)
    assert threads.of_each(1) == 8
    threads.spend(0.1, 0.5)
    assert [threads.of_each(workers) for workers in (1, 2, 20)] == [7, 3, 1]
    threads.spend(0.1, 0.2)  # between the bounds it stays as it is
    assert threads.of_each(1) == 7
    threads.spend(0.1, 0.05)
    assert threads.of_each(1) == 8
    threads.spend(0.1, 0.2)
    assert threads.of_each(1) == 8


def test_a_moment_is_too_short_to_judge_the_front_by():
    threads = Watched(0)
    threads.processors = 2
    threads.spend(0.001, 1.0)
    assert threads.of_each(1) == 2


def test_the_number_of_threads_that_is_wished_stays():
    threads = Watched(3)
    threads.spend(1.0, 0.9)
    assert threads.of_each(1) == threads.of_each(7) == 3


def test_the_processors_are_those_that_may_be_used(monkeypatch):
    monkeypatch.setattr("cresset.get_num_threads", lambda: 5)  # a container's bound, which the affinity does not tell
    assert Threads(0).of_each(1) == 5
