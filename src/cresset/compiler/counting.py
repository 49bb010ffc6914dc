"""What was captured, counted: `torch._dynamo.utils.counters`."""

import collections
import weakref

counters = collections.defaultdict(collections.Counter)
_backed = weakref.WeakSet()  # functions that keep what a backend made of their graphs


def count_graph(module):
    """A graph goes to a backend."""
    counters["stats"]["unique_graphs"] += 1
    counters["stats"]["calls_captured"] += sum(
        node.op in ("call_function", "call_method", "call_module") for node in module.graph.nodes
    )
    counters["frames"]["total"] += 1
    counters["frames"]["ok"] += 1


def count(topic, reasons):
    """One more for each of the reasons."""
    for reason in reasons:
        counters[topic][reason] += 1


def remember(backed):
    """`backed.made` is cleared when compiled code is to be forgotten."""
    _backed.add(backed)


def reset():
    """Forget what backends made of graphs, and the counts."""
    counters.clear()
    for backed in _backed:
        backed.made.clear()


def config():
    """The settings, torch._dynamo.config."""
    from .._dynamo import config

    return config
