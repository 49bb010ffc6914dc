"""Random numbers of threads that fetch samples."""

import pytest

import cresset
from cresset.random import thread_safe_generator
from cresset.utils.data import DataLoader, Dataset


class Drawn(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return cresset.rand(1, generator=thread_safe_generator())


def numbers(workers):
    cresset.manual_seed(3)
    loader = DataLoader(Drawn(), 2, num_workers=workers, worker_type="thread")
    return cresset.cat(list(loader)).flatten().tolist()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_thread_has_a_generator_of_its_own_that_starts_with_the_sample(workers):
    assert numbers(workers) == numbers(0) and len(set(numbers(0))) == 8


def test_elsewhere_there_is_none():
    assert thread_safe_generator() is None
