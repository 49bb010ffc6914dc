"""tokenizers: a vocabulary is trained here, and its batches are tensors for a model."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.train_from_iterator(
    ["the cat sat", "the dog ran far away"], trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"])
)
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")
batch = fast(["the cat", "the dog ran away quickly"], padding=True, return_tensors="pt")
assert batch["input_ids"].shape == (2, 5) and batch["attention_mask"].sum(1).tolist() == [2, 5]
assert batch["input_ids"].dtype == torch.int64 and batch["input_ids"][1, -1].item() == fast.unk_token_id
assert fast.decode(batch["input_ids"][0], skip_special_tokens=True) == "the cat"
model = BertModel(
    BertConfig(vocab_size=16, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
).eval()
alone = model(**fast(["the cat"], return_tensors="pt")).last_hidden_state
padded = model(**batch).last_hidden_state
torch.testing.assert_close(padded[:1, :2], alone, rtol=1e-4, atol=1e-5)  # the mask hides the padding
