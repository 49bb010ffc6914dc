"""peft: a LoRA is trained, saved, loaded on a fresh copy, and merged."""

import copy
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
base = LlamaForCausalLM(
    LlamaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=100,
    )
)
fresh = copy.deepcopy(base)
model = get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
ids = torch.randint(0, 100, (2, 8))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
losses = []
for _ in range(5):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
assert losses[-1] < losses[0]
wanted = model.eval()(input_ids=ids).logits
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = PeftModel.from_pretrained(fresh, folder).eval()
    torch.testing.assert_close(loaded(input_ids=ids).logits, wanted)
torch.testing.assert_close(model.merge_and_unload()(input_ids=ids).logits, wanted, rtol=1e-4, atol=1e-5)
