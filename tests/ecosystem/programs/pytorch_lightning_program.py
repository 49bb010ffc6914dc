"""pytorch_lightning, the package of the older name: fits and logs with its own loggers."""

import csv
import glob
import os
import tempfile

import pytorch_lightning
import torch
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader, TensorDataset


class Line(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    pytorch_lightning.seed_everything(0, verbose=False)
    x = torch.linspace(-1, 1, 32).unsqueeze(1)
    data = DataLoader(TensorDataset(x, 3 * x + 1), 8, shuffle=True)
    with tempfile.TemporaryDirectory() as folder:
        trainer = pytorch_lightning.Trainer(
            max_epochs=20,
            accelerator="cpu",
            default_root_dir=folder,
            logger=[CSVLogger(folder, name="csv"), TensorBoardLogger(folder, name="board")],
            log_every_n_steps=1,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Line()
        trainer.fit(model, data)
        assert abs(model.layer.weight.item() - 3) < 0.2 and abs(model.layer.bias.item() - 1) < 0.2
        with open(os.path.join(folder, "csv", "version_0", "metrics.csv")) as file:
            losses = [float(row["loss"]) for row in csv.DictReader(file)]
        assert len(losses) == 80 and losses[-1] < losses[0]
        assert glob.glob(os.path.join(folder, "board", "version_0", "events.out.tfevents*"))
