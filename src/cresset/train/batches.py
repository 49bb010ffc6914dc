"""What a step makes of a batch: loss, size, prediction, target, and values to average."""

import cresset


def move(batch, device):
    """The same nest of tuples, lists and dicts with its tensors on `device`."""
    if isinstance(batch, cresset.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return type(batch)((key, move(value, device)) for key, value in batch.items())
    if isinstance(batch, (list, tuple)):
        moved = [move(value, device) for value in batch]
        return type(batch)(*moved) if hasattr(batch, "_fields") else type(batch)(moved)
    return batch.to(device) if hasattr(batch, "to") else batch


def size_of(batch):
    """How many samples: the first dimension of the first tensor, 1 where there is none."""
    while not isinstance(batch, cresset.Tensor):
        if isinstance(batch, dict):
            batch = tuple(batch.values())
        if not isinstance(batch, (list, tuple)) or not batch:
            return 1
        batch = batch[0]
    return batch.shape[0] if batch.dim() else 1


def step_of(model, loss, step):
    """A function of a batch that gives (loss, prediction, target, values): from a loss function or from the user's step
    function.
    """
    if (loss is None) == (step is None):
        raise TypeError(
            "fit: give either loss, a function of (prediction, target), or step, a function of (model, batch)"
        )
    if step is not None and not callable(step):
        raise TypeError(f"fit: step should be a function of (model, batch), got {type(step).__name__}")
    if step is None:

        def pairs(batch):
            if not isinstance(batch, (list, tuple)) or len(batch) < 2:
                kind = f"{len(batch)} item(s)" if isinstance(batch, (list, tuple)) else type(batch).__name__
                hint = "give step=, a function of (model, batch), for others"
                if isinstance(batch, cresset.Tensor):
                    hint = f"DataLoader(TensorDataset(inputs, target), batch_size=...) gives such; or {hint}"
                raise TypeError(f"fit: a batch should be (inputs…, target) to be used with loss, got {kind}; {hint}")
            target = batch[-1]
            prediction = model(*batch[:-1])
            return loss(prediction, target), prediction, target, None

        return pairs

    def own(batch):
        given = step(model, batch)
        if isinstance(given, cresset.Tensor):
            return given, None, None, None
        if not isinstance(given, dict) or "loss" not in given:
            raise TypeError(f"fit: step should return the loss or a dict with 'loss', got {type(given).__name__}")
        values = dict(given)
        return values.pop("loss"), values.pop("prediction", None), values.pop("target", None), values

    return own


def check_loss(loss):
    if loss.numel() != 1:
        raise ValueError(f"fit: the loss should be one number, got shape {tuple(loss.shape)}; take its mean() or sum()")


class Means:
    """Means over samples of the loss and of other values. On a GPU the sums stay there until somebody asks."""

    def __init__(self):
        self.totals, self.count = {}, 0

    def add(self, name, value, size):
        self.totals[name] = self.totals.get(name, 0.0) + value * size

    def compute(self):
        count = max(self.count, 1)
        return {name: float(total) / count for name, total in self.totals.items()}

    def state_dict(self):
        return {"totals": {name: float(total) for name, total in self.totals.items()}, "count": self.count}

    def load_state_dict(self, state):
        self.totals, self.count = dict(state["totals"]), state["count"]


def update_metrics(metrics, prediction, target):
    if prediction is None:
        raise TypeError(
            "fit: metrics need the prediction; let step return a dict with 'loss', 'prediction' and 'target'"
        )
    with cresset.no_grad():
        for metric in metrics.values():
            metric.update(prediction) if target is None else metric.update(prediction, target)


def metric_values(metrics):
    """Numbers where a metric is one, lists where it has several."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in ((name, m.compute()) for name, m in metrics.items())
    }
