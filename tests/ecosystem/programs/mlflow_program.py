"""mlflow, in a local folder: parameters, metrics of tensors, the state of a model, models in both formats."""

import os
import tempfile

os.environ.update(
    GIT_PYTHON_REFRESH="quiet", MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_ALLOW_PICKLE_DESERIALIZATION="true"
)
import mlflow
import mlflow.pytorch
import numpy as np
import torch

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.set_experiment("ecosystem")
    model = torch.nn.Linear(4, 2)
    with mlflow.start_run() as run:
        mlflow.log_params({"lr": 0.1, "layers": 1})
        for step in range(3):
            mlflow.log_metric("loss", torch.tensor(1.0 / (step + 1)), step=step)
        mlflow.pytorch.log_state_dict(model.state_dict(), artifact_path="state")
    found = mlflow.tracking.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert [round(m.value, 4) for m in sorted(found, key=lambda m: m.step)] == [1.0, 0.5, 0.3333]
    state = mlflow.pytorch.load_state_dict(f"runs:/{run.info.run_id}/state")
    assert torch.equal(state["weight"], model.weight)

    model = torch.nn.Sequential(model, torch.nn.ReLU())
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    wanted = model(torch.from_numpy(x))
    for form in ("pickle", "pt2"):
        with mlflow.start_run():
            kept = mlflow.pytorch.log_model(
                model, name=form, input_example=x, serialization_format=form, pip_requirements=[]
            )
        torch.testing.assert_close(mlflow.pytorch.load_model(kept.model_uri)(torch.from_numpy(x)), wanted)
        found = mlflow.pyfunc.load_model(kept.model_uri).predict(x)
        np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-6)
