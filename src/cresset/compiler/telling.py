"""What torch.compile tells, for whoever asked with TORCH_LOGS or `torch._logging.set_logs`."""

logs = None  # torch._logging._internal, from when somebody asks


def tell(kind, make):
    """A message of a kind (`_logging._registrations.TOLD`); `make` gives the text of what is shown."""
    if logs is not None:
        logs.tell(kind, make)
