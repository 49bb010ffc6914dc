"""`cresset serve`: options and the configuration become settings; uvicorn runs the front."""

import asyncio
import os
import signal
import socket
import sys

from . import extra
from .logs import log
from .settings import ModelSettings, ServerSettings, SettingsError, parse_model, read_config

SERVER_OPTIONS = ("host", "port", "device", "store", "max_request", "max_connections", "grace", "log_requests")
MODEL_OPTIONS = ("device", "workers", "threads", "batch", "delay", "queue", "timeout", "memory")


def from_options(options):
    """(models, server settings, splits) of the command line. An option that is given wins over the configuration."""
    server, models, splits = read_config(options.config) if options.config else ({}, [], {})
    server |= {name: getattr(options, name) for name in SERVER_OPTIONS if getattr(options, name) is not None}
    given = {name: getattr(options, name) for name in MODEL_OPTIONS if getattr(options, name) is not None}
    common = {"device": server["device"]} if "device" in server else {}
    found = [ModelSettings(**{**common, **model, **given}) for model in models]
    found += [parse_model(text, {**common, **given}) for text in options.models]
    if not found and not server.get("store"):
        raise SettingsError("serve: no model is given; name some, a --config FILE, or a --store DIR to load them from")
    if options.token_file:
        with open(options.token_file, encoding="utf-8") as file:
            server["token"] = file.read().strip()
    elif os.environ.get("CRESSET_SERVE_TOKEN"):
        server["token"] = os.environ["CRESSET_SERVE_TOKEN"]
    seen = set()
    for model in found:
        if (model.name, model.version) in seen:
            raise SettingsError(
                f"serve: version {model.version} of {model.name} is given twice; NAME@VERSION=SOURCE names versions"
            )
        seen.add((model.name, model.version))
    return found, ServerSettings(**server), splits


def run(models, settings, splits=None):
    """Serve until told to stop (SIGTERM or Ctrl-C); the exit status."""
    extra.require()
    if sys.platform == "win32":
        raise SettingsError("serve: Windows is not supported yet; workers are reached by Unix sockets")
    import uvicorn

    from .protocol import FrontProtocol

    listening = listen(settings)
    state = {"serving": False}

    def on_signal(number, frame):
        if not state["serving"]:  # while models are loaded; afterwards uvicorn has its own
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    config = uvicorn.Config(
        None,
        http=type("Front", (FrontProtocol,), {"patience": settings.head_timeout, "heads": {}}),
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,  # nothing here asks who the client is
        lifespan="on",
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        server_header=False,
        ws="none",
    )
    with listening, asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        return runner.run(main(models, settings, splits, config, listening, state))


def listen(settings):
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sends small packets at once only on sockets that say they are TCP: 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host.strip("[]"), settings.port))
        listening.listen(2048)
    except (OSError, OverflowError) as error:
        listening.close()
        raise SettingsError(f"serve: cannot listen on {settings.host} port {settings.port}: {error}") from None
    return listening


async def main(models, settings, splits, config, listening, state):
    import uvicorn

    from .application import make_application
    from .garbage import collect_while_quiet
    from .registry import Registry

    registry, collecting = Registry(settings), None
    config.app = make_application(registry, settings)
    try:
        await registry.register_all(models)
        for name, weights in (splits or {}).items():
            if name not in registry.models:
                raise SettingsError(f"serve: the split of {name} names a model that is not there")
            registry.model(name).split(weights)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        log("listening", url=f"http://{shown}:{port}", models=sorted(registry.models), token=settings.token is not None)
        config.load()  # so that it is there before the first collection, which keeps what is there
        collecting = asyncio.get_running_loop().create_task(collect_while_quiet(registry))
        state["serving"] = True
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        state["serving"] = True
        if collecting is not None:
            collecting.cancel()
        await registry.stop()
    return 0
