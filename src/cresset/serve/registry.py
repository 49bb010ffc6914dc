"""Models by name and version: which version answers, loading and unloading at run time."""

import asyncio
import dataclasses
import os

from .logs import log
from .pool import Pool
from .problems import Refused
from .settings import ModelSettings, SettingsError


class Model:
    """The versions of one model. Requests that name none go to the default, or are split by weight."""

    def __init__(self, name):
        self.name, self.versions, self.default = name, {}, None
        self.weights, self.credit = {}, {}

    def choose(self):
        """The version for the next request. With weights 9 and 1, each ten requests are split nine to one, evenly
        mixed: every version gains its weight in credit, and the one with the most pays for all.
        """
        if not self.weights:
            return self.versions[self.default]
        for version, weight in self.weights.items():
            self.credit[version] = self.credit.get(version, 0) + weight
        best = max(self.weights, key=self.credit.__getitem__)
        self.credit[best] -= sum(self.weights.values())
        return self.versions[best]

    def split(self, weights):
        for version, weight in weights.items():
            if version not in self.versions:
                raise Refused(404, f"model {self.name} has no version {str(version)[:100]!r}")
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 1e9:
                raise Refused(
                    400, f"the weight of version {version} should be a number from 0, got {str(weight)[:100]}"
                )
        if weights and not sum(weights.values()) > 0:
            raise Refused(400, "one of the weights should be above 0")
        self.weights, self.credit = {version: weight for version, weight in weights.items() if weight}, {}


class Registry:
    """All models."""

    def __init__(self, settings):
        self.settings, self.models = settings, {}
        self.busy = set()  # (name, version) that are being loaded

    def pools(self):
        return [pool for model in self.models.values() for pool in model.versions.values()]

    def is_ready(self):
        return all(pool.ready_workers or not pool.wanted for pool in self.pools())

    def is_quiet(self, seconds):
        """Whether for so long no model was asked, and none is to answer."""
        since = asyncio.get_running_loop().time() - seconds
        return not any(pool.latest > since or pool.has_requests() for pool in self.pools())

    def model(self, name):
        if name not in self.models:
            raise Refused(404, f"there is no model {name[:100]!r}")
        return self.models[name]

    def pool(self, name, version=None):
        model = self.model(name)
        if version is None:
            return model.versions[model.default]
        if version not in model.versions:
            raise Refused(404, f"model {name} has no version {version[:100]!r}")
        return model.versions[version]

    async def register(self, settings):
        """Load a version and serve it once its workers are ready."""
        pool = await self.load(settings)
        self.add(pool)
        return pool

    async def register_all(self, models):
        """Load versions at the same time; the first of a model is its default."""
        tasks = [asyncio.get_running_loop().create_task(self.load(settings)) for settings in models]
        done = await asyncio.gather(*tasks, return_exceptions=True)
        for pool in done:
            if isinstance(pool, Pool):
                self.add(pool)
        for settings, pool in zip(models, done):
            if isinstance(pool, BaseException):
                raise SettingsError(f"serve: {settings.name} cannot be loaded: {pool}") from pool

    async def load(self, settings):
        """The Pool of a version, its workers ready."""
        key = (settings.name, settings.version)
        there = self.models.get(settings.name)
        if key in self.busy:
            raise Refused(409, f"version {settings.version} of {settings.name} is being loaded")
        if there and settings.version in there.versions:
            raise Refused(409, f"version {settings.version} of {settings.name} is there already")
        self.busy.add(key)
        pool = Pool(settings)
        try:
            await pool.start()
        finally:
            self.busy.discard(key)
        return pool

    def add(self, pool):
        settings = pool.settings
        model = self.models.setdefault(settings.name, Model(settings.name))
        model.versions[settings.version] = pool
        if model.default is None:
            model.default = settings.version
        log("registered", model=settings.name, version=settings.version, source=settings.source)

    async def unregister(self, name, version=None):
        """Stop serving a version, or the whole model; running requests are answered first."""
        model = self.model(name)
        versions = [version] if version is not None else list(model.versions)
        pools = [self.pool(name, one) for one in versions]
        if len(pools) < len(model.versions) and model.default in versions:
            raise Refused(403, f"version {version} is the default of {name}; make another one the default first")
        for one in versions:
            del model.versions[one]
            model.weights.pop(one, None)
        if not model.versions:
            del self.models[name]
        for pool in pools:
            await pool.stop(self.settings.grace)
            log("unregistered", model=name, version=pool.settings.version)

    def stored(self):
        """Files of the store that can be loaded: {name: path}."""
        store = self.settings.store
        if store is None:
            return {}
        names = sorted(name for name in os.listdir(store) if name.endswith((".pt2", ".pt")))
        return {name: os.path.join(store, name) for name in names}

    def settings_from_store(self, file, **given):
        """The settings of a file in the store. Only files of data: what runs code has to be named when the server is
        started.
        """
        stored = self.stored()
        if file not in stored:
            where = (
                "there is no store" if self.settings.store is None else f"the store has {', '.join(stored) or 'none'}"
            )
            raise Refused(404, f"{file[:100]!r} is not a model file in the store; {where}")
        name = given.pop("name", None) or file.rpartition(".")[0]
        fields = {field.name for field in dataclasses.fields(ModelSettings)}
        try:
            given = {"device": self.settings.device} | {k: v for k, v in given.items() if k in fields}
            return ModelSettings(name=name, source=stored[file], **given)
        except SettingsError as error:
            raise Refused(400, str(error)) from None

    async def stop(self):
        for pool in self.pools():
            await pool.stop(self.settings.grace)
