"""transformers: tiny models of seven families, generation, saving, pipelines, and a Trainer that resumes.
CRESSET_LONG=1: every modeling file is imported, too.
"""

import importlib
import os
import tempfile
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    CLIPConfig,
    CLIPModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    WhisperConfig,
    WhisperForConditionalGeneration,
    pipeline,
)

torch.manual_seed(0)
small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
ids = torch.randint(3, 100, (2, 8))

gpt = GPT2LMHeadModel(
    GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64, bos_token_id=0, eos_token_id=1)
)
gpt(ids, labels=ids).loss.backward()
gpt.eval()
greedy = gpt.generate(ids, max_new_tokens=5, do_sample=False, pad_token_id=0)
assert torch.equal(
    greedy, gpt.generate(ids, max_new_tokens=5, do_sample=False, pad_token_id=0, cache_implementation="static")
)
assert torch.equal(greedy, gpt.generate(ids, max_new_tokens=5, do_sample=False, pad_token_id=0, use_cache=False))
for more in (
    {"num_beams": 2, "do_sample": False},
    {"num_beams": 3, "num_return_sequences": 2, "length_penalty": 0.5},
    {"do_sample": True, "top_k": 5},
    {"do_sample": True, "top_p": 0.9, "temperature": 0.7, "repetition_penalty": 1.2},
):
    made = gpt.generate(ids, max_new_tokens=5, min_new_tokens=5, pad_token_id=0, **more)
    assert made.shape == (2 * more.get("num_return_sequences", 1), 13) and torch.equal(made[0, :8], ids[0])
torch.manual_seed(5)
once = gpt.generate(ids, max_new_tokens=5, do_sample=True, pad_token_id=0)
torch.manual_seed(5)
assert torch.equal(once, gpt.generate(ids, max_new_tokens=5, do_sample=True, pad_token_id=0))

bert = BertForSequenceClassification(BertConfig(vocab_size=100, **small))
bert(ids, attention_mask=torch.ones_like(ids), labels=torch.tensor([0, 1])).loss.backward()

config = LlamaConfig(num_key_value_heads=1, vocab_size=100, **small)
llama, eager = LlamaForCausalLM(config), LlamaForCausalLM._from_config(config, attn_implementation="eager")
eager.load_state_dict(llama.state_dict())
torch.testing.assert_close(llama.eval()(ids).logits, eager.eval()(ids).logits, rtol=1e-4, atol=1e-5)
llama.gradient_checkpointing_enable()
llama.train()(ids, labels=ids).loss.backward()
checked = [p.grad.clone() for p in llama.parameters()]
llama.gradient_checkpointing_disable()
llama.zero_grad()
llama(ids, labels=ids).loss.backward()
torch.testing.assert_close(checked, [p.grad for p in llama.parameters()])
assert llama.to(torch.bfloat16)(ids).logits.dtype == torch.bfloat16
assert llama.eval().generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0).shape == (2, 12)

t5 = T5ForConditionalGeneration(
    T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=100, decoder_start_token_id=0)
)
t5(input_ids=ids, labels=ids).loss.backward()
assert t5.eval().generate(ids, max_new_tokens=4).shape[0] == 2
assert ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, **small))(
    torch.randn(1, 3, 32, 32)
).logits.shape == (1, 2)
text = {"vocab_size": 100, "max_position_embeddings": 16, "eos_token_id": 99, "bos_token_id": 98, **small}
clip = CLIPModel(
    CLIPConfig(text_config=text, vision_config={"image_size": 32, "patch_size": 8, **small}, projection_dim=16)
)
clip(input_ids=ids, pixel_values=torch.randn(2, 3, 32, 32), return_loss=True).loss.backward()
layers = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
whisper = WhisperForConditionalGeneration(
    WhisperConfig(
        d_model=32, vocab_size=100, num_mel_bins=8, max_source_positions=20, max_target_positions=20, **layers, **tokens
    )
)
sound = torch.randn(1, 8, 40)
whisper(input_features=sound, labels=ids[:1]).loss.backward()
assert whisper.eval().generate(sound, max_new_tokens=4, do_sample=False).shape[0] == 1


words = ["<pad>", "<unk>", "a", "b", "c"]
spell = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
spell.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=spell, pad_token="<pad>", unk_token="<unk>")
sort = pipeline("text-classification", model=bert.eval(), tokenizer=tokenizer)
answers = sort(["a b", "c"], batch_size=2)
assert [answer["label"] in ("LABEL_0", "LABEL_1") for answer in answers] == [True, True]
write = pipeline("text-generation", model=gpt, tokenizer=tokenizer)
assert write("a b c", max_new_tokens=3, do_sample=False)[0]["generated_text"].startswith("a b c")


class Counting(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        x = torch.arange(8) + index % 4
        return {"input_ids": x, "labels": x}


with tempfile.TemporaryDirectory() as folder:
    model = BertModel(BertConfig(vocab_size=100, **small))
    model.save_pretrained(folder)
    for more in ({}, {"device_map": "auto"}, {"dtype": torch.float32, "attn_implementation": "eager"}):
        again = BertModel.from_pretrained(folder, **more)
        assert all(
            torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True)
        )
    quiet = {"per_device_train_batch_size": 4, "report_to": [], "disable_tqdm": True, "use_cpu": True}
    model = GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=50, n_positions=32, bos_token_id=0, eos_token_id=1)
    )
    first = Trainer(
        model=model,
        args=TrainingArguments(folder, max_steps=6, eval_strategy="steps", eval_steps=3, save_steps=3, **quiet),
        train_dataset=Counting(),
        eval_dataset=Counting(),
    )
    first.train()
    assert len([entry for entry in first.state.log_history if "eval_loss" in entry]) == 2
    assert first.predict(Counting()).predictions.shape == (16, 8, 50)
    second = Trainer(
        model=model, args=TrainingArguments(folder, max_steps=8, bf16=True, **quiet), train_dataset=Counting()
    )
    assert second.train(resume_from_checkpoint=f"{folder}/checkpoint-6").global_step == 8

if os.environ.get("CRESSET_LONG"):
    sources, failed = sorted(Path(transformers.__file__).parent.glob("models/*/modeling_*.py")), []
    for source in sources:
        try:
            importlib.import_module(f"transformers.models.{source.parent.name}.{source.stem}")
        except Exception as error:
            failed.append(f"{source.stem}: {error}")
    print(f"{len(sources) - len(failed)} of {len(sources)} modeling files import")
    assert not failed, "\n".join(failed)
