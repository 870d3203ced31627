"""External verifiers that cannot be used: one error that names the file and the cure."""

import pytest
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from knowhalu.encoder.external import open_verifier
from knowhalu.errors import ModelError
from tests.support.tiny import write_library_base
from tests.support.tiny_verifiers import card, rename_outputs


def without(name):
    return lambda folder: (folder / name).unlink()


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def shortened(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def headless(folder):
    path = folder / "model.safetensors"
    save_file({k: v for k, v in load_file(path).items() if not k.startswith("classifier")}, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without("model.safetensors"), "there are no weights.*model.safetensors"),
        (pickled, r"pytorch_model\.bin would have to be unpickled.*conversion"),
        (shortened, "cannot load a verifier"),
        (without("tokenizer.json"), r"tokenizer\.json.*save_pretrained"),
        (headless, "weights lack classifier.*no trained verifier"),
        (lambda f: rename_outputs(f, "LABEL_0", "LABEL_1", "LABEL_2"), "label 'LABEL_0' does not tell.*verifier.toml"),
        (lambda f: card(f, labels=["supported", "unsupported"]), "has 3 outputs, but `labels` has 2"),
        (lambda f: card(f, preset="minichek"), "unknown preset 'minichek'.*minicheck-roberta"),
        (lambda f: card(f, kind="nli"), "verifier.toml: kind: Input should be"),
        (lambda f: card(f, colour="red"), "verifier.toml: colour: Extra"),
        (lambda f: card(f, template="{premise}"), "must have {premise} and {claim}"),
        (lambda f: card(f, preset="alignscore"), "another layout"),
        (lambda f: card(f, preset="hhem-2.1-open"), "another layout"),
        (lambda f: card(f, preset="minicheck-flan-t5"), "cannot load a verifier of the kind 'answer-token'"),
        (lambda f: card(f, max_length=900), "max_length is 900, but the model has 512 positions"),
        (lambda f: card(f, max_length=32, template="snow " * 30 + "{premise} {claim}"), "larger max_length"),
        (lambda f: (f / "verifier.toml").write_text("kind = "), "verifier.toml: cannot read"),
    ],
)
def test_damaged_or_foreign_folder_is_one_model_error(copied, damage, message):
    folder = copied("bert")
    damage(folder)
    with pytest.raises(ModelError, match=message) as caught:
        open_verifier(folder)
    assert "\n" not in str(caught.value)


def test_unknown_answer_token_and_foreign_tokenizer_are_model_errors(copied):
    with pytest.raises(ModelError, match="no token 'maybe'"):
        open_verifier(card(copied("t5"), preset="minicheck-flan-t5", answers=["▁", "maybe"]))
    folder = copied("bert")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["foreign"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(ModelError, match="more tokens than the model"):
        open_verifier(folder)


def test_folder_of_a_bare_encoder_is_no_verifier(tmp_path):
    with pytest.raises(ModelError, match=r"cannot load the verifier's weights|no verifier"):
        open_verifier(write_library_base(tmp_path / "base"))
