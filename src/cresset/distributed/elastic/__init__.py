"""torch.distributed.elastic: agents that start the processes of a job, watch them and start them again."""
