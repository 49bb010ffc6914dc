"""What a browser sees: the status page with latencies, and the API's page. Nothing comes from elsewhere: no scripts,
fonts or styles of other sites.
"""

import time
from importlib import resources

import cresset

from . import openapi
from .metrics import BOUNDS, resident

# A page may run its own file and nothing else, so that a name in it can never become a script.
POLICY = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'"
STARTED = time.time()


def text(name):
    return resources.files("cresset.serve").joinpath("page", name).read_text(encoding="utf-8")


def status(registry):
    """What the status page shows."""
    models = []
    for pool in registry.pools():
        measures, settings = pool.measures, pool.settings
        model = registry.model(settings.name)
        latency = measures.latency
        models.append(
            {
                "name": settings.name,
                "version": settings.version,
                "default": model.default == settings.version,
                "weight": model.weights.get(settings.version),
                "platform": pool.metadata.get("platform", ""),
                "workers": [pool.ready_workers, pool.wanted],
                "memory": sum(worker.memory() for worker in pool.workers if worker.process is not None),
                "queue": [len(pool.queue), settings.queue],
                "batch": settings.batch if pool.metadata.get("joins") else 1,
                "delay": settings.delay,
                "statuses": {str(code): count for code, count in sorted(measures.statuses.items())},
                "requests": latency.count,
                "mean_batch": measures.batch.total / max(1, measures.batch.count),
                "restarts": measures.restarts,
                "percentiles": {str(p): latency.percentile(p) for p in (50, 90, 99)},
                "latency": latency.counts,
            }
        )
    return {
        "version": cresset.version.__version__,
        "uptime": time.time() - STARTED,
        "memory": resident(),
        "bounds": BOUNDS,
        "models": models,
    }


def routes(registry):
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff"}

    async def status_page(request):
        return HTMLResponse(text("status.html").replace("/*style*/", text("page.css")), headers=headers)

    async def script(request):
        return Response(text("status.js"), media_type="text/javascript", headers=headers)

    async def status_json(request):
        return JSONResponse(status(registry))

    async def document(request):
        return JSONResponse(openapi.document())

    async def api_page(request):
        return HTMLResponse(openapi.page(text("page.css")), headers=headers)

    return [
        Route("/", status_page),
        Route("/status.js", script),
        Route("/status.json", status_json),
        Route("/openapi.json", document),
        Route("/docs", api_page),
    ]
