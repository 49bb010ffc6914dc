"""Before any test: processes that tests start find the installed cresset, not the folder they are started in.

`pytest --device cuda tests/ops tests/nn ...` runs tests with new tensors on another device.
"""

import os

import pytest

os.environ["PYTHONSAFEPATH"] = "1"


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="where new tensors go: cpu or cuda")


@pytest.fixture(autouse=True)
def default_device(request):
    device = request.config.getoption("--device")
    if device == "cpu":
        yield
        return
    import cresset

    cresset.set_default_device(device)
    yield
    cresset.set_default_device(None)
