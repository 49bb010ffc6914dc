"""torch.distributed.elastic.multiprocessing: where programs find `errors.record`."""
