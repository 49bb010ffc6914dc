"""mlflow, in a local folder: parameters, metrics of tensors, a model that is logged and loaded again."""

import os
import tempfile

os.environ.update(GIT_PYTHON_REFRESH="quiet", MLFLOW_DISABLE_TELEMETRY="true")
import mlflow
import mlflow.pytorch
import torch

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.set_experiment("ecosystem")
    model = torch.nn.Linear(4, 2)
    x = torch.randn(3, 4)
    with mlflow.start_run() as run:
        mlflow.log_params({"lr": 0.1, "layers": 1})
        for step in range(3):
            mlflow.log_metric("loss", torch.tensor(1.0 / (step + 1)), step=step)
        logged = mlflow.pytorch.log_model(
            model, name="model", pip_requirements=[], serialization_format="pickle", input_example=x.numpy()
        )
        mlflow.pytorch.log_state_dict(model.state_dict(), artifact_path="state")
    found = mlflow.tracking.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert [round(m.value, 4) for m in sorted(found, key=lambda m: m.step)] == [1.0, 0.5, 0.3333]
    loaded = mlflow.pytorch.load_model(logged.model_uri)
    assert type(loaded) is torch.nn.Linear and torch.equal(loaded(x), model(x))
    state = mlflow.pytorch.load_state_dict(f"runs:/{run.info.run_id}/state")
    assert torch.equal(state["weight"], model.weight)
