"""What the tests do with a program that was once found: it runs the same on both libraries, step by step."""

import warnings

import lockstep
import programs
import torch

import cresset


def assert_runs_as_in_pytorch(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference, ran = programs.replay(lockstep.Lockstep([torch, cresset]), program)
    assert difference is None, f"{ran[-1]}: {difference}"
    assert ran == program
