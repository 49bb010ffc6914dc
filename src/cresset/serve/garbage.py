"""When the front looks for garbage: while nobody waits.

Note [Collections and the slowest requests]
A collection of all that Python's collector watches stops the front for 3 to 17 ms. At four fifths of the capacity, what
came meanwhile takes four times as long again to be caught up with: one such pause in three seconds is what the slowest
of a hundred requests are. On the short way (protocol.py) requests and connections leave nothing that refers to itself,
so it goes without a collection. The rest, as of a status page or of a request that is no request, is collected when
nobody has asked a model for a while; or at any time, once there is so much of it that memory would grow.
"""

import asyncio
import gc

LOOK = 0.1  # seconds between two looks
FEW, MANY = 2_000, 20_000  # objects that were made and not freed since the last collection


async def collect_while_quiet(registry):
    """Collect garbage in place of Python's own schedule, until cancelled. What is there at first stays."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        while True:
            await asyncio.sleep(LOOK)
            made = gc.get_count()[0]
            if made > MANY or (made > FEW and registry.is_quiet(LOOK)):
                gc.collect()
    finally:
        gc.enable()
