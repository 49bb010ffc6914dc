"""TorchServe's management API (register, describe, scale, set-default, unregister), a split between versions, and the
model repository of the Open Inference Protocol. Models come from the store, as files of data.
"""

import asyncio
import http
import json
import time

from .logs import log
from .problems import Refused
from .settings import SettingsError


def error_type(status):
    """TorchServe's names of what went wrong."""
    names = {
        400: "BadRequestException", 403: "InvalidModelVersionException", 404: "ModelNotFoundException",
        409: "ConflictStatusException",
        429: "ServiceUnavailableException", 500: "InternalServerException", 503: "ServiceUnavailableException",
    }  # fmt: skip
    return names.get(status, http.HTTPStatus(status).phrase.replace(" ", "") + "Exception")


def whole(query, name, default=None, least=0, most=1000):
    """A query's parameter as a whole number."""
    if name not in query:
        return default
    text = query[name]
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not least <= int(text) <= most:
        raise Refused(400, f"{name} should be a whole number from {least} to {most}, got {text[:100]!r}")
    return int(text)


async def small_json(request):
    """The JSON object in a request's body; {} without one."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > 1 << 20:
            raise Refused(413, "the body should have at most 1 MB")
        parts.append(part)
    try:
        value = json.loads(b"".join(parts) or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body should be a JSON object")
    return value


async def load(registry, settings):
    try:
        return await registry.register(settings)
    except (RuntimeError, SettingsError) as error:
        log("load failed", model=settings.name, version=settings.version, reason=str(error))
        raise Refused(400, f"{settings.name} cannot be loaded: {error}") from None


async def list_models(registry, request):
    limit = whole(request.query_params, "limit", 100, 1)
    first = whole(request.query_params, "next_page_token", 0, most=10**9)
    names = sorted(registry.models)
    answer = {
        "models": [
            {"modelName": name, "modelUrl": registry.pool(name).settings.source}
            for name in names[first : first + limit]
        ]
    }
    return answer | ({"nextPageToken": str(first + limit)} if first + limit < len(names) else {})


async def register(registry, request):
    query = request.query_params
    if "url" not in query:
        raise Refused(400, "url is missing: the name of a file in the store")
    given = {
        "name": query.get("model_name"),
        "version": query.get("version", "1"),
        "workers": whole(query, "initial_workers", 1),
        "batch": whole(query, "batch_size", 1, 1, 100_000),
        "delay": whole(query, "max_batch_delay", 0, 0, 60_000),
        "timeout": whole(query, "response_timeout", 30, 1, 100_000),
    }
    settings = registry.settings_from_store(query["url"], **given)
    await load(registry, settings)
    words = f'Model "{settings.name}" Version: {settings.version} registered with {settings.workers} initial workers'
    return {"status": words if settings.workers else words + ". Use scale workers API to add workers for the model."}


def description(registry, pool):
    settings = pool.settings
    joined = pool.metadata.get("joins", False)
    return {
        "modelName": settings.name,
        "modelVersion": settings.version,
        "modelUrl": settings.source,
        "runtime": "python",
        "minWorkers": pool.wanted,
        "maxWorkers": pool.wanted,
        "batchSize": settings.batch if joined else 1,
        "maxBatchDelay": settings.delay,
        "responseTimeout": settings.timeout,
        "loadedAtStartup": not registry.settings.store or not settings.source.startswith(registry.settings.store),
        "default": registry.model(settings.name).default == settings.version,
        "weight": registry.model(settings.name).weights.get(settings.version),
        "workers": [
            {
                "id": str(worker.number),
                "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(worker.started)),
                "status": "READY" if worker.is_ready else "LOADING",
                "memoryUsage": worker.memory(),
                "pid": worker.pid,
                "gpu": settings.device != "cpu",
                "device": worker.device,
            }
            for worker in pool.workers
            if worker.process is not None
        ],
        "jobQueueStatus": {
            "remainingCapacity": settings.queue - len(pool.queue),
            "pendingRequests": len(pool.queue),
        },
    }


async def describe(registry, request):
    name, version = request.path_params["name"], request.path_params.get("version")
    pools = registry.model(name).versions.values() if version == "all" else [registry.pool(name, version)]
    return [description(registry, pool) for pool in pools]


async def scale(registry, request):
    query, name = request.query_params, request.path_params["name"]
    pool = registry.pool(name, request.path_params.get("version"))
    count = whole(query, "min_worker", whole(query, "max_worker", 1))
    task = asyncio.get_running_loop().create_task(pool.scale(count))
    if query.get("synchronous", "false").lower() != "true":
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a failure stands in the log
        return 202, {"status": "Processing worker updates..."}
    try:
        await task
    except RuntimeError as error:
        raise Refused(500, f"a worker of {name} could not be started: {error}") from None
    return {"status": f"Workers scaled to {count} for model: {name}"}


async def set_default(registry, request):
    name, version = request.path_params["name"], request.path_params["version"]
    registry.pool(name, version)
    registry.model(name).default = version
    return {"status": f'Default version successfully updated for model "{name}" to "{version}"'}


async def split(registry, request):
    """PUT /models/NAME/split with {"1": 9, "2": 1}: requests that name no version are split so; {} ends it."""
    model = registry.model(request.path_params["name"])
    model.split(await small_json(request))
    return {"status": f"Split of {model.name}", "weights": model.weights}


async def unregister(registry, request):
    name, version = request.path_params["name"], request.path_params.get("version")
    await registry.unregister(name, version)
    return {"status": f'Model "{name}" unregistered'}


async def repository_index(registry, request):
    only_ready = (await small_json(request)).get("ready", False)
    found = [
        {"name": pool.settings.name, "version": pool.settings.version, "state": "READY", "reason": ""}
        for pool in registry.pools()
    ]
    known = {entry["name"] for entry in found}
    if not only_ready:
        stored = (file.rpartition(".")[0] for file in registry.stored())
        found += [
            {"name": n, "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"} for n in stored if n not in known
        ]
    return found


async def repository_load(registry, request):
    """Load NAME.pt2 or NAME.pt of the store; what is loaded stays as it is."""
    name = request.path_params["name"]
    if name in registry.models:
        return {}
    file = next((file for file in registry.stored() if file.rpartition(".")[0] == name), f"{name}.pt2")
    await load(registry, registry.settings_from_store(file))
    return {}


async def repository_unload(registry, request):
    await registry.unregister(request.path_params["name"])
    return {}
