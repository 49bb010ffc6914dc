"""lightning: fit, validate, test, predict; callbacks, checkpoints and resuming, precision, clipping, loggers, two
processes.
"""

import os
import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.save_hyperparameters()

    def loss_of(self, batch, name):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.layer(x), y)
        self.log(name, loss)
        return loss

    def training_step(self, batch, index):
        return self.loss_of(batch, "train")

    def validation_step(self, batch, index):
        self.loss_of(batch, "val")

    def test_step(self, batch, index):
        self.loss_of(batch, "test")

    def predict_step(self, batch, index):
        return self.layer(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters())
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


if __name__ == "__main__":
    torch.manual_seed(0)
    data = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,))), 4)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        callbacks = [EarlyStopping("val"), ModelCheckpoint(folder, monitor="val")]
        trainer = lightning.Trainer(
            max_epochs=2,
            default_root_dir=folder,
            gradient_clip_val=1.0,
            precision="bf16-mixed",
            callbacks=callbacks,
            **quiet,
        )
        model = Classifier()
        trainer.fit(model, data, data)
        assert "test" in trainer.test(model, data, verbose=False)[0] and len(trainer.predict(model, data)) == 4
        best = trainer.checkpoint_callback.best_model_path
        again = lightning.Trainer(max_epochs=3, default_root_dir=folder, enable_checkpointing=False, **quiet)
        again.fit(Classifier(), data, data, ckpt_path=best)
        assert again.current_epoch == 3 and isinstance(Classifier.load_from_checkpoint(best), Classifier)
        assert "val" in again.validate(model, data, verbose=False)[0]
        for precision, kind in (("32-true", torch.float32), ("bf16-true", torch.bfloat16), ("64-true", torch.float64)):
            once = lightning.Trainer(fast_dev_run=True, precision=precision, **quiet)
            once.fit(made := Classifier(), data)
            assert made.layer.weight.dtype == kind

        logged = lightning.Trainer(
            **quiet
            | {"logger": [CSVLogger(folder), TensorBoardLogger(folder)], "log_every_n_steps": 1, "max_epochs": 1},
            callbacks=[LearningRateMonitor()],
            accumulate_grad_batches=2,
            default_root_dir=folder,
        )
        logged.fit(Classifier(), data, data)
        with open(os.path.join(logged.loggers[0].log_dir, "metrics.csv")) as file:
            assert {"train", "val", "lr-AdamW"} <= set(file.readline().strip().split(","))

        torch.manual_seed(0)
        both = Classifier()
        before = both.layer.weight.detach().clone()
        several = lightning.Trainer(
            strategy="ddp_spawn", devices=2, max_epochs=1, enable_checkpointing=False, default_root_dir=folder, **quiet
        )
        several.fit(both, data, data)  # in two processes; the weights come back
        assert several.world_size == 2 and not torch.equal(both.layer.weight, before)
