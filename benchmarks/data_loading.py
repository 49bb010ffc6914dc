"""How quickly do batches come out of a DataLoader?"""

import importlib

from .harness import benchmark


def digits(lib):
    """1797 images of 8 by 8 as Python lists, as a reader of a file would have them."""
    data = importlib.import_module(lib.__name__ + ".utils.data")
    rows = [[(7 * i + j) % 17 for j in range(64)] for i in range(1797)]

    class Digits(data.Dataset):
        def __len__(self):
            return len(rows)

        def __getitem__(self, index):
            return lib.tensor(rows[index], dtype=lib.float32).view(1, 8, 8) / 16, index % 10

    return data, Digits()


def images(lib):
    """2000 color images of 32 by 32 with a flip and a normalization, as in a small image classifier."""
    data = importlib.import_module(lib.__name__ + ".utils.data")
    pixels = lib.randint(0, 256, (2000, 3, 32, 32), dtype=lib.uint8)

    class Images(data.Dataset):
        def __len__(self):
            return 2000

        def __getitem__(self, index):
            image = pixels[index].float() / 255
            if lib.rand(1).item() < 0.5:
                image = image.flip(2)
            return (image - 0.5) / 0.25, index % 10

    return data, Images()


def epoch(loader):
    for batch in loader:
        del batch


@benchmark(unit="ms")
def digits_here(lib):
    data, dataset = digits(lib)
    loader = data.DataLoader(dataset, batch_size=64, shuffle=True)
    return lambda: epoch(loader)


@benchmark(unit="ms")
def digits_with_2_workers(lib):
    data, dataset = digits(lib)
    loader = data.DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)
    return lambda: epoch(loader)


@benchmark(unit="ms")
def images_with_2_workers(lib):
    data, dataset = images(lib)
    loader = data.DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)
    return lambda: epoch(loader)


@benchmark(unit="ms")
def first_batch_of_2_workers(lib):
    data, dataset = images(lib)

    def first():
        return next(iter(data.DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2)))

    return first


@benchmark(unit="ms")
def rows_of_tensors(lib):
    data = importlib.import_module(lib.__name__ + ".utils.data")
    dataset = data.TensorDataset(lib.randn(20_000, 16), lib.arange(20_000))
    loader = data.DataLoader(dataset, batch_size=64, shuffle=True)
    return lambda: epoch(loader)
