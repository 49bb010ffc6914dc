"""What fit is given: names and classes where their meaning is clear, a sentence at once where it is not."""

import functools

import pytest

import cresset
from cresset import metrics, nn, optim, train

F = nn.functional
X = cresset.tensor([[0.0], [1.0], [2.0], [3.0]])
BATCHES = [(X, 3 * X - 1)]
CLASSES = [(X, cresset.tensor([0, 0, 1, 1]))]


def fit(model, loss, optimizer, batches=BATCHES, **options):
    return train.fit(model, batches, loss, optimizer, **{"progress": "none", "seed": 0, **options})


def result(loss, optimizer):
    cresset.manual_seed(0)
    model = nn.Linear(1, 1)
    made = optimizer(model.parameters()) if callable(optimizer) and not isinstance(optimizer, type) else optimizer
    fit(model, loss, made, epochs=3)
    return model.weight.item()


@pytest.mark.parametrize("loss", ["mse", "mse_loss", "MSELoss", "mseloss", nn.MSELoss, nn.MSELoss(), F.mse_loss])
def test_a_loss_may_be_a_name_a_class_or_a_function(loss):
    assert result(loss, optim.SGD) == result(F.mse_loss, lambda parameters: optim.SGD(parameters))


@pytest.mark.parametrize("optimizer", ["Adam", "adam", optim.Adam, functools.partial(optim.Adam, lr=1e-3)])
def test_an_optimizer_may_be_a_name_a_class_or_a_function_of_parameters(optimizer):
    cresset.manual_seed(0)
    model = nn.Linear(1, 1)
    run = fit(model, F.mse_loss, optimizer, epochs=3)
    assert isinstance(run.optimizer, optim.Adam) and run.step == 3
    assert model.weight.item() == result(F.mse_loss, lambda parameters: optim.Adam(parameters))


@pytest.mark.parametrize("given", ["accuracy", ["accuracy"], [metrics.Accuracy], {"accuracy": "Accuracy"}])
def test_a_metric_may_be_a_name_or_a_class(given):
    run = fit(nn.Linear(1, 2), "cross_entropy", "sgd", CLASSES, validation=CLASSES, metrics=given)
    assert 0 <= run.history[0]["val_accuracy"] <= 1
    found = train.evaluate(nn.Linear(1, 2), CLASSES, nn.CrossEntropyLoss, metrics=given)
    assert set(found) == {"loss", "accuracy"}


FROZEN = optim.SGD([nn.Parameter(cresset.ones(1), requires_grad=False)], lr=0.1)
STRANGE = optim.lr_scheduler.StepLR(optim.SGD([cresset.ones(1)], lr=0.1), 1)


@pytest.mark.parametrize(
    "change, kind, words",
    [
        ({"loss": "cross_entropi"}, ValueError, "no loss named 'cross_entropi'; did you mean 'cross_entropy'?"),
        ({"loss": optim.SGD}, TypeError, "loss should be a function of (prediction, target), got the class SGD"),
        ({"loss": nn.Linear}, TypeError, "the loss Linear cannot be made without arguments of its own"),
        ({"loss": 3}, TypeError, "loss should be a function of (prediction, target), got int"),
        ({"optimizer": "sdg"}, ValueError, "no optimizer named 'sdg'; did you mean 'sgd'?"),
        ({"optimizer": nn.Linear}, TypeError, "optimizer should be one of cresset.optim, got the class Linear"),
        ({"optimizer": 0.1}, TypeError, "made with model.parameters(), got float"),
        ({"optimizer": None}, TypeError, "optimizer is missing"),
        ({"train_metrics": "acuracy"}, ValueError, "no metric named 'acuracy'; did you mean 'accuracy'?"),
        ({"train_metrics": "precision"}, TypeError, "the metric Precision cannot be made without arguments"),
        ({"train_metrics": [F.mse_loss]}, TypeError, "with update, compute and reset, got function"),
        ({"model": nn.Linear}, TypeError, "model should be a Module, an instance of Module, got the class Linear"),
        ({"optimizer": FROZEN}, ValueError, "no parameter of the SGD requires a gradient, so nothing would be trained"),
        ({"scheduler": "cosine"}, TypeError, "scheduler should be one of cresset.optim.lr_scheduler, made with"),
        ({"scheduler": optim.lr_scheduler.StepLR}, TypeError, "the scheduler StepLR cannot be made without arguments"),
        ({"scheduler": STRANGE}, ValueError, "the StepLR is of another optimizer, so the learning rate would stay"),
        ({"step": 3, "loss": None}, TypeError, "step should be a function of (model, batch), got int"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_first_step(change, kind, words):
    model = nn.Linear(1, 1)
    given = {"model": model, "loss": F.mse_loss, "optimizer": optim.SGD(model.parameters()), **change}
    before = model.weight.clone()
    with pytest.raises(kind) as error:
        train.fit(loader=BATCHES, progress="none", **given)
    assert words in str(error.value) and str(error.value).startswith("fit: ")
    assert cresset.equal(model.weight, before)


def test_a_schedule_may_be_a_function_of_an_optimizer_that_is_made_by_its_name():
    run = fit(nn.Linear(1, 1), "mse", "sgd", scheduler=lambda made: optim.lr_scheduler.StepLR(made, 1, 0.5), epochs=2)
    assert run.scheduler.optimizer is run.optimizer and run.lr == pytest.approx(0.001 / 4)


def test_another_models_optimizer_is_refused():
    other = optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    with pytest.raises(ValueError, match="the SGD has none of the model's parameters, so nothing would be trained"):
        fit(nn.Linear(1, 1), F.mse_loss, other)


def test_an_optimizer_of_the_losss_own_parameters_is_welcome():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(cresset.ones(()))

        def forward(self, prediction, target):
            return (self.scale * prediction - target).square().mean()

    model, loss = nn.Linear(1, 1).requires_grad_(False), Scaled()
    fit(model, loss, optim.SGD(loss.parameters(), lr=0.1))
    assert loss.scale.item() != 1


@pytest.fixture
def run():
    model = nn.Linear(1, 1)
    return fit(model, "mse", "sgd", validation=BATCHES, epochs=4)


def test_the_curves_of_a_run_are_a_picture_in_a_notebook_and_letters_elsewhere(run, tmp_path):
    plot = run.plot()
    assert plot._repr_html_().count("<svg") == 1 and "polyline" in plot._repr_html_()
    assert "loss, training" in str(plot) and "loss, validation" in str(plot)
    assert plot.save(tmp_path / "curves.html") == str(tmp_path / "curves.html")
    assert "<svg" in (tmp_path / "curves.html").read_text()
    assert run.plot("lr")._repr_html_().count("<svg") == 1
    with pytest.raises(ValueError, match="there is no 'f1' in the history; there are"):
        run.plot("f1")
    with pytest.raises(ValueError, match=r"should end with .html"):
        plot.save(tmp_path / "curves.png")


def test_a_run_shows_itself_in_a_notebook(run):
    shown = run._repr_html_()
    assert "4 epochs, 4 steps" in shown and "<svg" in shown and "<script" not in shown


def test_the_style_of_a_plot_is_for_the_plot_alone(run):
    style = run.plot()._repr_html_().partition("<style>")[2].partition("</style>")[0]
    for rule in style.splitlines():
        assert rule.startswith((".cresset-plot", "@media(prefers-color-scheme:dark){.cresset-plot{")), rule


def test_a_run_without_epochs_draws_nothing(run):
    run.history = []
    assert str(run.plot()) == "no epoch is done yet" and "<svg" not in run._repr_html_()


SAMPLES = cresset.utils.data.TensorDataset(X, X)


@pytest.mark.parametrize(
    "change, kind, words",
    [
        ({"batches": None}, TypeError, "loader should give batches, as a DataLoader or a list does, got NoneType"),
        ({"batches": SAMPLES}, TypeError, "got a dataset, TensorDataset, which gives single samples; give DataLoader("),
        ({"batches": (X, X)}, TypeError, "got Tensor; DataLoader(TensorDataset(inputs, target), batch_size=...)"),
        ({"batches": []}, ValueError, "fit: the loader gave no batches"),
        ({"batches": iter(BATCHES), "epochs": 2}, ValueError, "a generator gives its batches only once"),
        ({"validation": 3}, TypeError, "validation should give batches, as a DataLoader or a list does, got int"),
        ({"validation": []}, ValueError, "evaluate: the loader gave no batches"),
        ({"epochs": -1}, ValueError, "epochs should be a whole number from 0, got -1"),
        ({"epochs": 1.5}, ValueError, "epochs should be a whole number from 0, got 1.5"),
        ({"epochs": "3"}, ValueError, "epochs should be a whole number from 0, got '3'"),
    ],
)
def test_what_gives_no_batches_is_refused_with_a_sentence(change, kind, words):
    with pytest.raises(kind) as caught:
        fit(nn.Linear(1, 1), "mse", "sgd", **change)
    assert words in str(caught.value)


def test_a_name_far_from_all_lists_them_up_to_a_whole_word():
    with pytest.raises(ValueError, match=r"no loss named 'quux'; there are binary_cross_entropy, .*, \[...\]$"):
        fit(nn.Linear(1, 1), "quux", "sgd")


@pytest.mark.skipif(cresset.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("run", [fit, train.evaluate], ids=["fit", "evaluate"])
def test_a_gpu_that_is_not_there_is_said_in_a_sentence(run):
    arguments = (nn.Linear(1, 1), F.mse_loss, "sgd") if run is fit else (nn.Linear(1, 1), BATCHES, "mse")
    with pytest.raises(RuntimeError, match="^(fit|evaluate): device 'cuda:0': there is no GPU that"):
        run(*arguments, device="cuda:0")
