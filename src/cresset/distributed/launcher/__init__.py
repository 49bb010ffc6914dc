"""torch.distributed.launcher: start a job from a program, as torchrun does from the command line."""

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
