"""A GPT-2 of 2 layers, 20 steps of transformers' Trainer."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randint(0, 500, (160, 64), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def prepare():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(n_layer=2, n_head=4, n_embd=128, vocab_size=500, n_positions=64, bos_token_id=0, eos_token_id=1)
    )

    def train():
        with tempfile.TemporaryDirectory() as folder:
            settings = TrainingArguments(
                folder,
                max_steps=20,
                per_device_train_batch_size=8,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
                seed=3,
            )
            trainer = Trainer(model=model, args=settings, train_dataset=Sentences())
            trainer.remove_callback(
                next(type(c) for c in trainer.callback_handler.callbacks if "Print" in type(c).__name__)
            )
            trainer.train()
            return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    return train
