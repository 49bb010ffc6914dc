"""torch.monitor: events, their handlers, and statistics by intervals."""

import time
from datetime import datetime, timedelta

import pytest

import cresset
from cresset.monitor import Aggregation, Event, Stat, TensorboardEventHandler, log_event


@pytest.fixture
def events():
    found = []
    handle = cresset.monitor.register_event_handler(found.append)
    yield found
    cresset.monitor.unregister_event_handler(handle)


def test_handlers_see_events_until_they_are_unregistered(events):
    more = []
    handle = cresset.monitor.register_event_handler(more.append)
    event = Event("step", datetime.now(), {"loss": 0.5, "epoch": 1, "name": "a"})
    log_event(event)
    cresset.monitor.unregister_event_handler(handle)
    cresset.monitor.unregister_event_handler(handle)
    log_event(event)
    assert more == [event] and events == [event, event]


def test_a_stat_logs_its_interval_with_the_last_value_that_it_takes(events):
    stat = Stat("a", tuple(Aggregation), timedelta(hours=1), 3)
    stat.add(1)
    stat.add(5)
    assert stat.count == 2 and set(stat.get().values()) == {0.0} and not events
    stat.add(3)
    stat.add(100)  # beyond the interval's samples
    (event,) = events
    assert event.name == "torch.monitor.Stat" and stat.count == 0
    expected = {"a.value": 3.0, "a.mean": 3.0, "a.count": 3.0, "a.sum": 9.0, "a.max": 5.0, "a.min": 1.0}
    assert event.data == expected and stat.get()[Aggregation.SUM] == 9.0


def test_a_stat_logs_an_interval_that_is_over_with_the_next_value_and_the_rest_when_it_goes(events):
    stat = Stat("b", (Aggregation.SUM,), timedelta(milliseconds=5))
    stat.add(1)
    time.sleep(0.02)
    assert not events
    stat.add(4)
    assert [event.data for event in events] == [{"b.sum": 1.0}] and stat.count == 1
    del stat
    assert [event.data for event in events] == [{"b.sum": 1.0}, {"b.sum": 4.0}]


def test_stats_are_written_for_tensorboard(events):
    class Writer:
        written = []

        def add_scalar(self, name, value, walltime):
            self.written.append((name, value, walltime > 0))

    handler = TensorboardEventHandler(Writer())
    stat = Stat("c", (Aggregation.MAX,), timedelta(hours=1), 1)
    stat.add(2)
    handler(events[0])
    handler(Event("another", datetime.now(), {"c.max": 1.0}))
    assert Writer.written == [("c.max", 2.0, True)]


def test_the_data_of_an_event_are_texts_and_numbers():
    with pytest.raises(TypeError, match="'a': \\[1\\]"):
        Event("x", datetime.now(), {"a": [1]})
    with pytest.raises(TypeError, match="a name and a datetime"):
        Event("x", 0.0, {})
