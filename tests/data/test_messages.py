"""What passes between a loader and its workers."""

import subprocess
import sys

PROGRAM = """
import sys
import cresset
from cresset.utils.data import DataLoader, Dataset

class Told(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return cresset.ones(2), "cresset.nn" in sys.modules

loader = DataLoader(Told(), batch_size=2, num_workers=1, multiprocessing_context="fork")
print([told.any().item() for _, told in loader])
"""


def test_sending_a_batch_does_not_import_the_layers():
    """It would delay the first batch by a tenth of a second."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == str([False] * 4), run.stderr
