"""Checkpoints: what was saved comes back, and a resumed run has the bits of one that never stopped."""

import gc
import os
import random

import pytest

import cresset
from cresset import nn, train
from cresset.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

numpy = pytest.importorskip("numpy")
F = nn.functional


@pytest.fixture(autouse=True)
def no_workers_are_left():
    """A loader that was left within an epoch keeps its workers, and their files, until it is collected."""
    yield
    gc.collect()


class Noisy(Dataset):
    """Augments with cresset's, Python's and NumPy's generators."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        x = (
            cresset.full((4,), float(index)) / 24
            + 0.1 * cresset.randn(4)
            + 0.1 * random.random()
            + 0.1 * float(numpy.random.rand())
        )
        return x, cresset.tensor(index % 2)


def parts(workers=0, generator=None, **options):
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = cresset.optim.Adam(model.parameters(), lr=0.05)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=workers, generator=generator, **options)
    return model, loader, F.cross_entropy, optimizer


def bits(model):
    return {name: value.tolist() for name, value in model.state_dict().items()}


def stopper(step):
    class Stop:
        def on_step(self, run):
            random.random()  # the loop may draw, too
            if run.step == step:
                run.stop("for the test")

    return Stop()


@pytest.mark.parametrize(("workers", "own_generator"), [(0, False), (2, False), (0, True), (2, True)])
def test_stopping_within_an_epoch_changes_no_bit(tmp_path, workers, own_generator):
    def fit(folder, stop, resume=False):
        generator = cresset.Generator().manual_seed(5) if own_generator else None
        model, loader, loss, optimizer = parts(workers, generator)
        scheduler = cresset.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=24)
        run = train.fit(
            model,
            loader,
            loss,
            optimizer,
            epochs=3,
            scheduler=scheduler,
            schedule="step",
            folder=folder,
            resume=resume,
            seed=3,
            callbacks=[stopper(stop)],
            progress="none",
            log_every=1,
        )
        return run, bits(model)

    whole, expected = fit(tmp_path / "whole", None)
    part, _ = fit(tmp_path / "part", 8)  # 6 batches an epoch
    assert (part.epoch, part.batch, part.step, part.reason) == (1, 2, 8, "for the test")
    cresset.manual_seed(99)
    random.seed(99)
    rest, found = fit(tmp_path / "part", None, resume=True)
    assert found == expected
    assert rest.history == whole.history and rest.step == 18

    def steps(folder):
        return [
            (line["step"], line["loss"], line["lr"])
            for line in train.read_records(folder / "run.jsonl")
            if line["kind"] == "step"
        ]

    assert steps(tmp_path / "part") == steps(tmp_path / "whole")


def test_the_test_above_can_fail(tmp_path):
    """Without the generators' states the bits differ."""
    model, loader, loss, optimizer = parts()
    train.fit(model, loader, loss, optimizer, epochs=1, folder=tmp_path, seed=3, progress="none")
    cresset.manual_seed(1)
    ends = []
    for generators in (True, False):
        model, loader, loss, optimizer = parts()
        cresset.manual_seed(2)
        checkpoint = train.Checkpoint(
            tmp_path / "last.pt", model=model, optimizer=optimizer, loader=loader, generators=generators
        )
        checkpoint.load()
        train.fit(model, loader, loss, optimizer, progress="none")
        ends.append(bits(model))
    assert ends[0] != ends[1]


def test_a_scaler_a_plateau_and_a_callback_are_kept(tmp_path):
    class Counter:
        count = 0

        def on_step(self, run):
            self.count += 1

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    def fit(folder, epochs, resume=False):
        model, loader, loss, optimizer = parts()
        counter = Counter()
        scheduler = cresset.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=10.0)
        run = train.fit(
            model,
            loader,
            loss,
            optimizer,
            epochs=epochs,
            scheduler=scheduler,
            amp="float16",
            folder=tmp_path / folder,
            resume=resume,
            callbacks=counter,
            seed=0,
            progress="none",
        )
        return run, counter

    fit("part", 2)
    run, counter = fit("part", 3, resume=True)
    assert counter.count == 18 and run.epoch == 3
    # No epoch can gain ten times the best, so each one divides the rate by ten.
    assert [epoch["lr"] for epoch in run.history] == pytest.approx([0.05, 0.005, 0.0005])
    whole, _ = fit("whole", 3)
    assert run.scaler.state_dict() == whole.scaler.state_dict() and run.history == whole.history
    assert bits(run.model) == bits(whole.model)


def test_user_state_comes_back_and_generators_continue(tmp_path):
    checkpoint = train.Checkpoint(tmp_path / "deep" / "state.pt")
    assert not checkpoint.exists()
    checkpoint.save(epoch=2, names=["a"], best={"loss": 0.5}, mean=cresset.ones(2))
    drawn = cresset.rand(1).item(), random.random(), float(numpy.random.rand())
    user = checkpoint.load()
    assert (cresset.rand(1).item(), random.random(), float(numpy.random.rand())) == drawn
    assert (
        user["epoch"] == 2
        and user["names"] == ["a"]
        and user["best"] == {"loss": 0.5}
        and user["mean"].tolist() == [1, 1]
    )


def test_only_the_model_can_be_loaded(tmp_path):
    model = nn.Linear(1, 1)
    path = tmp_path / "model.pt"
    train.Checkpoint(path, model=model).save()
    other = nn.Linear(1, 1)
    cresset.manual_seed(4)
    before = cresset.get_rng_state()
    train.Checkpoint(path, model=other).load(only=["model"])
    assert other.weight.item() == model.weight.item()
    assert cresset.equal(cresset.get_rng_state(), before)


def test_errors_say_what_is_there(tmp_path):
    with pytest.raises(TypeError, match="epoch is a int, which has no state_dict"):
        train.Checkpoint(tmp_path / "x.pt", epoch=3)
    path = tmp_path / "model.pt"
    train.Checkpoint(path, model=nn.Linear(1, 1)).save()
    with pytest.raises(KeyError, match="has no ema; it has model"):
        train.Checkpoint(path, model=nn.Linear(1, 1), ema=nn.Linear(1, 1)).load()
    cresset.save({"a": 1}, path)
    with pytest.raises(ValueError, match="was not written by Checkpoint.save"):
        train.Checkpoint(path).load()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    checkpoint = train.Checkpoint(tmp_path / "a.pt")
    checkpoint.save(step=1)
    with pytest.raises(Exception, match="pickle"):
        checkpoint.save(step=2, bad=lambda: 0)
    assert checkpoint.load() == {"step": 1}
    assert os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_sampler_of_a_loader_keeps_its_own_generator(tmp_path, workers):
    """Two epochs drawn from a sampler's generator, with and without a stop after the first."""

    def loader():
        data = TensorDataset(cresset.arange(10))
        return DataLoader(
            data,
            batch_size=2,
            sampler=RandomSampler(data, generator=cresset.Generator().manual_seed(8)),
            num_workers=workers,
        )

    whole = loader()
    epochs = [[batch[0].tolist() for batch in whole] for _ in range(2)]
    first = loader()
    assert [batch[0].tolist() for batch in first] == epochs[0]
    train.Checkpoint(tmp_path / "l.pt", loader=first).save()
    second = loader()
    train.Checkpoint(tmp_path / "l.pt", loader=second).load()
    assert [batch[0].tolist() for batch in second] == epochs[1]


@pytest.mark.parametrize("stop", [0, 1, 3, 7, 9, 10])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_that_draws_as_it_goes_continues_within_its_epoch(tmp_path, workers, stop):
    """With replacement indices are drawn 32 at a time, and workers are sent batches before they are needed."""

    def loader():
        data = TensorDataset(cresset.arange(100))
        return DataLoader(
            data,
            batch_size=10,
            sampler=RandomSampler(data, replacement=True, generator=cresset.Generator().manual_seed(8)),
            num_workers=workers,
        )

    whole = loader()
    expected = [batch[0].tolist() for _ in range(2) for batch in whole]
    first = loader()
    iterator = iter(first)
    found = [next(iterator)[0].tolist() for _ in range(stop)]
    train.Checkpoint(tmp_path / "l.pt", loader=first).save()
    del iterator
    second = loader()
    train.Checkpoint(tmp_path / "l.pt", loader=second).load()
    found += [batch[0].tolist() for batch in second]
    found += [batch[0].tolist() for batch in second]
    assert found == expected
