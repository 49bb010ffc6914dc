"""What `fit` and `evaluate` are given, made into what the loop needs: names and classes where their meaning is clear,
and a sentence at once where it is not.
"""

import difflib
import inspect
import textwrap

from cresset import nn, optim
from cresset.data import Dataset, IterableDataset

# The functions of (prediction, target) in nn.functional, by their names with and without "_loss".
LOSSES = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "hinge_embedding_loss", "huber_loss",
    "kl_div", "l1_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
)  # fmt: skip


def _found(what, name, known):
    """The entry of `known` that a name means, in whatever case it is written."""
    plain = {key.lower(): value for key, value in known.items()}
    if name.lower() in plain:
        return plain[name.lower()]
    close = difflib.get_close_matches(name.lower(), plain, 1)
    hint = f"did you mean {close[0]!r}?" if close else textwrap.shorten(f"there are {', '.join(known)}", 500)
    raise ValueError(f"fit: there is no {what} named {name!r}; {hint}")


def _made(what, kind, *args):
    """An instance of a class that was given in place of one."""
    try:
        return kind(*args)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"fit: the {what} {kind.__name__} cannot be made without arguments of its own ({error}); make it yourself "
            f"and give the instance"
        ) from None


def as_loss(loss):
    """A function of (prediction, target) from one, from a class of nn such as CrossEntropyLoss, or from a name."""
    if isinstance(loss, str):
        functions = {name: getattr(nn.functional, name) for name in LOSSES}
        functions |= {name.removesuffix("_loss"): function for name, function in functions.items()}
        classes = {name: getattr(nn, name) for name in dir(nn) if name.endswith("Loss")}
        loss = _found("loss", loss, functions | classes)
    if inspect.isclass(loss):
        if not issubclass(loss, nn.Module):
            raise TypeError(f"fit: loss should be a function of (prediction, target), got the class {loss.__name__}")
        loss = _made("loss", loss)
    if loss is not None and not callable(loss):
        raise TypeError(f"fit: loss should be a function of (prediction, target), got {type(loss).__name__}")
    return loss


def as_optimizer(optimizer, model, loss):
    """An optimizer of the model's parameters: one that has them, a class or a name of cresset.optim, or a function of
    parameters.
    """
    if optimizer is None:
        raise TypeError("fit: optimizer is missing; give one of cresset.optim, made with model.parameters()")
    if isinstance(optimizer, str):
        kinds = (getattr(optim, name) for name in dir(optim))
        known = {
            kind.__name__: kind
            for kind in kinds
            if inspect.isclass(kind) and issubclass(kind, optim.Optimizer) and kind is not optim.Optimizer
        }
        optimizer = _found("optimizer", optimizer, known)
    if inspect.isclass(optimizer):
        if not issubclass(optimizer, optim.Optimizer):
            raise TypeError(f"fit: optimizer should be one of cresset.optim, got the class {optimizer.__name__}")
        optimizer = _made("optimizer", optimizer, list(model.parameters()))
    elif callable(optimizer) and not hasattr(optimizer, "param_groups"):
        optimizer = optimizer(list(model.parameters()))
    if not hasattr(optimizer, "param_groups") or not hasattr(optimizer, "step"):
        raise TypeError(
            "fit: optimizer should be one of cresset.optim, made with model.parameters(), got "
            f"{type(optimizer).__name__}"
        )
    if not any(p.requires_grad for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(
            f"fit: no parameter of the {type(optimizer).__name__} requires a gradient, so nothing would be trained; "
            "model.requires_grad_() lets all of the model's be trained"
        )
    own = {id(p) for p in model.parameters()}
    if isinstance(loss, nn.Module):
        own |= {id(p) for p in loss.parameters()}
    if not any(id(p) in own for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(
            f"fit: the {type(optimizer).__name__} has none of the model's parameters, so nothing would be "
            "trained; make it with model.parameters() of this model"
        )
    return optimizer


def as_scheduler(scheduler, optimizer):
    """A schedule of this optimizer's learning rate: one that has it, or a function of the optimizer."""
    if scheduler is None:
        return None
    if inspect.isclass(scheduler):
        scheduler = _made("scheduler", scheduler, optimizer)
    elif callable(scheduler) and not hasattr(scheduler, "step"):
        scheduler = scheduler(optimizer)
    if not callable(getattr(scheduler, "step", None)):
        raise TypeError(
            "fit: scheduler should be one of cresset.optim.lr_scheduler, made with the optimizer, or a function of the "
            f"optimizer that makes one, got {type(scheduler).__name__}"
        )
    other = getattr(scheduler, "optimizer", None)
    if hasattr(other, "param_groups") and other.param_groups is not optimizer.param_groups:
        raise ValueError(
            f"fit: the {type(scheduler).__name__} is of another optimizer, so the learning rate would stay; make it "
            "with the one that fit is given, or give a function of the optimizer that makes it"
        )
    return scheduler


def as_metrics(metrics):
    """Metrics by name, from instances, classes or names of cresset.metrics; a list or a single one is named after its
    class.
    """
    if not metrics:
        return {}
    if isinstance(metrics, dict):
        return {name: _metric(metric) for name, metric in metrics.items()}
    metrics = [_metric(metric) for metric in (metrics if isinstance(metrics, (list, tuple)) else [metrics])]
    return {type(metric).__name__.lower(): metric for metric in metrics}


def _metric(metric):
    from cresset import metrics

    if isinstance(metric, str):
        known = {name: getattr(metrics, name) for name in metrics.__all__ if name not in ("Metric", "functional")}
        metric = _found("metric", metric, known)
    if inspect.isclass(metric):
        metric = _made("metric", metric)
    missing = [name for name in ("update", "compute", "reset") if not callable(getattr(metric, name, None))]
    if missing:
        raise TypeError(
            "fit: a metric should be one of cresset.metrics, with update, compute and reset, got "
            f"{type(metric).__name__}"
        )
    return metric


def check_loader(loader, name):
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise TypeError(
            f"fit: {name} should give batches, got a dataset, {type(loader).__name__}, which gives single samples; "
            "give DataLoader(dataset, batch_size=...)"
        )
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise TypeError(f"fit: {name} should give batches, as a DataLoader or a list does, got {type(loader).__name__}")


def check_epochs(epochs):
    if isinstance(epochs, bool) or not hasattr(epochs, "__index__") or epochs < 0:
        raise ValueError(f"fit: epochs should be a whole number from 0, got {epochs!r}")
