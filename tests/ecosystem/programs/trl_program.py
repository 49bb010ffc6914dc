"""trl: supervised fine-tuning of a tiny Llama, alone and with a LoRA."""

import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = ["<pad>", "<eos>", "<unk>", "one", "two", "three", "four"]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
data = Dataset.from_dict({"text": ["one two three four", "two three four one"] * 4})

for lora in (None, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")):
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=32,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        settings = SFTConfig(
            folder,
            max_steps=8,
            learning_rate=2e-2,
            per_device_train_batch_size=4,
            logging_steps=1,
            save_steps=8,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            max_length=16,
        )
        trainer = SFTTrainer(model=model, args=settings, train_dataset=data, processing_class=fast, peft_config=lora)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        assert len(losses) == 8 and losses[-1] < losses[0], losses
