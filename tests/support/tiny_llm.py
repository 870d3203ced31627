"""Tiny language models with random weights and a tokenizer trained on a few sentences, written to a folder."""

from pathlib import Path

TEXT = """
The lighthouse at Carn Point was built in 1871 by the engineer Mara Quill. It stands on granite, north of the harbour.
Which year was it built? Who was the engineer of the lighthouse at Carn Point? No specific information is available.
The answer names the wrong engineer, so the judgment is INCORRECT. The answer is right: CORRECT. It stays INCONCLUSIVE.
### Question: ### Answer: ### Query: ### Knowledge: ### Judgment: CORRECT INCORRECT INCONCLUSIVE YES NO NONE
"""
SPECIAL = ["<unk>", "<s>", "</s>", "<|user|>", "<|system|>", "<|assistant|>"]
CHAT = (
    "<s>{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system prompt') }}{% endif %}" + CHAT


def write_tokenizer(folder: Path, template: str | None) -> int:
    """Train and write a byte-level BPE tokenizer that puts <s> before a text; returns the size of its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator([TEXT], trainer)
    bpe.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return len(tokenizer)


def write_model(folder: Path, kind: str = "llama", template: str | None = None, terse: bool = False, **changes) -> Path:
    """Write a model of a kind: llama, qwen2, mistral, gpt_neox, gemma2 or mamba; a terse one soon ends its replies."""
    import torch
    import transformers

    vocabulary = write_tokenizer(folder, template)
    torch.manual_seed(7)
    shape = {
        "vocab_size": vocabulary, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.4,
    }  # fmt: skip
    if kind not in ("gpt_neox", "mamba"):
        shape["num_key_value_heads"] = 2
    if kind == "gemma2":
        shape |= {"head_dim": 12, "sliding_window": 64}
    if kind == "mamba":
        shape = {
            k: v for k, v in shape.items() if k not in ("num_attention_heads", "intermediate_size", "max_position_embeddings")
        }
    config = transformers.AutoConfig.for_model(kind, **(shape | changes))
    model = transformers.AutoModelForCausalLM.from_config(config)
    if terse:
        with torch.no_grad():
            model.lm_head.weight[2] *= 3
    model.save_pretrained(folder)
    return folder
