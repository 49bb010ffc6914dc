"""`python files.py write|read FOLDER`: a model of transformers, written by one library and read by the other."""

import sys

import cpu_build  # noqa: F401
import torch
from transformers import BertConfig, BertModel


def outputs(model):
    with torch.no_grad():
        return model.eval()(torch.arange(8).reshape(1, 8)).last_hidden_state


if __name__ == "__main__":
    task, folder = sys.argv[1:]
    torch.manual_seed(0)
    if task == "write":
        size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        model = BertModel(BertConfig(vocab_size=100, **size))
        model.save_pretrained(folder)
        torch.save({"state": model.state_dict(), "outputs": outputs(model)}, f"{folder}/whole.pt")
    else:
        kept = torch.load(f"{folder}/whole.pt", weights_only=True)
        model = BertModel.from_pretrained(folder)
        torch.testing.assert_close(outputs(model), kept["outputs"], rtol=1e-4, atol=1e-5)
        for name, value in model.state_dict().items():
            assert torch.equal(value, kept["state"][name]), name
