"""Jobs on Ray: `on_ray` runs a function in several Ray workers that are the ranks of one job."""

import os


def on_ray(fn, world_size, *args, resources=None, backend="gloo", timeout=None, **kwargs):
    """Run `fn(*args, **kwargs)` in `world_size` Ray workers, inside of a process group; what each gave, by rank.

    Args:
        fn: a function; in it `torch.distributed` is ready.
        world_size: how many workers.
        resources: what each worker needs, as in ray.remote: {"num_cpus": 2}; one CPU by default.
        backend, timeout: as in init_process_group.

    Ray has to be there (`pip install "cresset[ray]"`); `ray.init()` is called if the program has not done so. If one
    rank fails, the others are ended, and its error is raised here.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError('on_ray: Ray is not installed; `pip install "cresset[ray]"` brings it') from error
    if world_size < 1:
        raise ValueError(f"on_ray: world_size must be positive, not {world_size}")
    if not ray.is_initialized():
        ray.init()
    worker = ray.remote(max_restarts=0, **(resources or {"num_cpus": 1}))(_Worker)
    workers = [worker.remote() for _ in range(world_size)]
    try:
        host, port = ray.get(workers[0].place.remote())
        hosts = ray.get([w.host.remote() for w in workers])
        calls = []
        for rank, w in enumerate(workers):
            told = {
                "RANK": rank, "WORLD_SIZE": world_size, "MASTER_ADDR": host, "MASTER_PORT": port,
                "LOCAL_RANK": hosts[:rank].count(hosts[rank]), "LOCAL_WORLD_SIZE": hosts.count(hosts[rank]),
            }  # fmt: skip
            calls.append(w.run.remote({k: str(v) for k, v in told.items()}, fn, args, kwargs, backend, timeout))
        waiting = list(calls)
        while waiting:  # whoever fails first is heard first
            done, waiting = ray.wait(waiting, num_returns=1)
            ray.get(done)
        return ray.get(calls)
    finally:
        for w in workers:
            ray.kill(w)


class _Worker:
    """What runs in a Ray worker."""

    def host(self):
        return os.uname().nodename

    def place(self):
        """Where rank 0 can hold the store."""
        import socket

        import ray

        address = ray.util.get_node_ip_address()
        with socket.socket() as one:
            one.bind((address, 0))
            return address, one.getsockname()[1]

    def run(self, told, fn, args, kwargs, backend, timeout):
        from cresset import distributed

        os.environ.update(told)
        distributed.init_process_group(backend, timeout=timeout)
        try:
            return fn(*args, **kwargs)
        finally:
            distributed.destroy_process_group()
