"""`cresset serve`: models behind HTTP.

The front, one process, speaks HTTP and holds the queues; the workers, processes of their own, read requests, compute
and write answers, so that nothing a request says or a model does can stop the front.

| file | what it holds |
|---|---|
| `settings.py` | what is served, how, and where: the options and the TOML file |
| `application.py` | the front: routes, from the request to the queue and back |
| `pool.py`, `process.py` | the workers of one model: queue, batches, restarts; one worker as the front sees it |
| `registry.py` | models by name and version: default, split, loading and unloading at run time |
| `worker.py` | the loop of a worker |
| `sources.py`, `batches.py`, `handlers.py` | a model from a file or a class; requests run together; TorchServe's handlers |
| `open_inference.py`, `predictions.py` | the two languages of requests and answers |
| `protocol.py` | HTTP: how slowly one may ask, and the short way of requests that are all there |
| `management.py`, `guard.py`, `metrics.py`, `pages.py` | TorchServe's management API, who may ask, numbers, what a browser sees |
| `load.py`, `drive.py`, `capacity.py` | `cresset bench-serve`; its client; what a server carries |
"""  # noqa: E501

from .settings import ModelSettings, ServerSettings

__all__ = ["ModelSettings", "ServerSettings", "serve"]


def serve(models, settings=None):
    """Serve `models` until the process is told to stop (SIGTERM or Ctrl-C).

    Args:
        models: ModelSettings, one for each version of a model.
        settings: ServerSettings: address, token, limits.
    """
    from .command import run

    return run(models, settings or ServerSettings())
