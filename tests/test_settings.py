"""Settings: one tree from TOML and pairs, and errors that name what is wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.encoder.options import EncoderOptions
from knowhalu.errors import SettingsError
from knowhalu.profiles import load_settings
from knowhalu.registry import LLMS, METHODS, REASONERS, import_object, method_card
from knowhalu.settings import Settings, merge_settings, refuse_foreign_code


def written(tmp_path, text):
    file = tmp_path / "run.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_settings_default_without_file_and_pairs():
    assert load_settings() == Settings()


def test_settings_file_is_read(tmp_path):
    file = written(tmp_path, '[knowhalu]\nbase_form = "structured"\ndelta1 = 0.9\n[engine]\nin_flight = 7\n')
    settings = load_settings(file)
    assert (settings.knowhalu.base_form, settings.knowhalu.delta1, settings.engine.in_flight) == ("structured", 0.9, 7)


def test_pairs_take_precedence_over_the_file(tmp_path):
    file = written(tmp_path, "[engine]\nin_flight = 7\nbatch = 3\n")
    engine = load_settings(file, ["engine.in_flight=9", "engine.ordered = false"]).engine
    assert (engine.in_flight, engine.batch, engine.ordered) == (9, 3, False)


@pytest.mark.parametrize(
    ("pair", "group", "name", "value"),
    [
        ("retrieval.embedder=/models/bge", "retrieval", "embedder", "/models/bge"),
        ('retrieval.embedder="a=b"', "retrieval", "embedder", "a=b"),
        ("knowhalu.off_target=false", "knowhalu", "off_target", False),
        ("knowhalu.delta2=0.75", "knowhalu", "delta2", 0.75),
    ],
)
def test_values_may_be_written_without_quotes(pair, group, name, value):
    assert getattr(getattr(load_settings(pairs=[pair]), group), name) == value


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("engine.inflight=1", r"--set engine\.inflight=1: engine\.inflight: no such setting"),
        ("nothing=1", "nothing: no such setting"),
        ("engine.in_flight=0", r"engine\.in_flight: .*greater than or equal to 1"),
        ("engine.in_flight=many", r"engine\.in_flight: .*valid integer.*'many'"),
        ("knowhalu.base_form=both", r"knowhalu\.base_form"),
        ("engine", "write it as name.name=value"),
        ("=1", "write it as"),
        ("engine..batch=1", "write it as"),
        ("method.name=1", "method"),
        ("engine.batch.size=1", r"engine\.batch"),
        ("engine=3", "engine"),
    ],
)
def test_invalid_pair_is_named_with_the_remedy(pair, said):
    with pytest.raises(SettingsError, match=said) as caught:
        load_settings(pairs=[pair])
    assert f"--set {pair}" in str(caught.value)


def test_error_names_the_invalid_pair_among_valid_ones():
    with pytest.raises(SettingsError, match=r"--set method\.name=1: method is a value"):
        load_settings(pairs=["method=knowhalu", "method.name=1"])


@pytest.mark.parametrize(("text", "said"), [("[engine", "cannot read"), ("[engine]\nx = 1", "engine.x: no such setting")])
def test_invalid_settings_file_is_named(tmp_path, text, said):
    file = written(tmp_path, text)
    with pytest.raises(SettingsError, match=said) as caught:
        load_settings(file)
    assert str(file) in str(caught.value)


def test_missing_or_undecodable_settings_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.toml: cannot read"):
        load_settings(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'method = "caf\xe9"')
    with pytest.raises(SettingsError, match=r"latin\.toml: cannot read"):
        load_settings(tmp_path / "latin.toml")


@given(st.text(max_size=30))
def test_any_pair_is_parsed_or_refused(pair):
    try:
        assert isinstance(load_settings(pairs=[pair]), Settings)
    except SettingsError as error:
        assert "--set" in str(error)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(SettingsError, match="unknown method 'knowhallu'. Did you mean 'knowhalu'"):
        method_card("knowhallu")


PLACES = [*LLMS.values(), *(place for card in METHODS.values() for place in filter(None, (card.make, *card.reasoners.values())))]


@pytest.mark.parametrize("place", PLACES)
def test_every_import_path_of_the_registry_exists(place):
    assert callable(import_object(place))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_options_and_a_description(name):
    card = METHODS[name]
    assert card.options in Settings.model_fields
    assert set(card.reasoners) <= set(REASONERS)
    assert card.about and card.needs and card.cost


@pytest.mark.parametrize("name", ["retrieval.urll", "retrieval.url.more", "retrieval.mode", ".url", "retrieval.timeout"])
@pytest.mark.parametrize("address", ["http://me:secret@host", "me:secret@host"])
def test_messages_on_settings_hide_the_password_of_an_address(name, address):
    pairs = ["retrieval.url=x"] * (name == "retrieval.url.more")
    with pytest.raises(SettingsError) as caught:
        load_settings(pairs=[*pairs, f"{name}={address}"])
    assert "secret" not in str(caught.value) and "host" in str(caught.value)


@pytest.mark.parametrize("pair", ["verifier=base", "encoder.verifier=base", 'encoder.verifier="base"'])
def test_verifier_has_a_short_name(pair):
    assert load_settings(pairs=[pair]) == Settings(encoder=EncoderOptions(verifier="base"))


@pytest.mark.parametrize(
    "text", ['verifier = "base"', '[encoder]\nverifier = "base"', '[encoder]\nthreads = 2\nverifier = "base"']
)
def test_verifier_of_a_settings_file(tmp_path, text):
    assert load_settings(written(tmp_path, text)).encoder.verifier == "base"
    assert load_settings(written(tmp_path, text), pairs=["verifier=mine"]).encoder.verifier == "mine"
    assert merge_settings(written(tmp_path, text), {"verifier": Path("mine")}).encoder.verifier == "mine"


def test_verifier_given_by_both_names_must_be_the_same(tmp_path):
    for text in ('verifier = "a"\n[encoder]\nverifier = "b"', '[encoder]\nfolder = "a"\nverifier = "b"'):
        with pytest.raises(SettingsError, match="both are set"):
            load_settings(written(tmp_path, text))
    assert load_settings(pairs=["verifier=a", "encoder.folder=b"]).encoder.verifier == "b"


@pytest.mark.parametrize("old", ["mine", Path("mine")])
def test_old_name_of_the_verifier_is_read(tmp_path, old):
    assert load_settings(pairs=[f"encoder.folder={old}"]).encoder.verifier == "mine"
    assert load_settings(written(tmp_path, f'[encoder]\nfolder = "{old}"')).encoder.verifier == "mine"
    for branch in ({"folder": old}, {"folder": old, "verifier": "mine"}):
        assert merge_settings(load_settings(pairs=["verifier=base"]), {"encoder": branch}).encoder.verifier == "mine"
    assert Settings.model_validate({"encoder": {"folder": None}}).encoder.verifier == "auto"


def test_old_name_of_the_verifier_means_a_folder_never_a_model():
    assert load_settings(pairs=["encoder.folder=base"]).encoder.verifier == "./base"


@pytest.mark.parametrize("pair", ["verifier=3", "encoder.folder=3", "verifier=", "verifier=[1]"])
def test_verifier_that_is_no_name_is_refused(pair):
    with pytest.raises(SettingsError, match=r"encoder\.verifier"):
        load_settings(pairs=[pair])


@pytest.mark.parametrize("tree", [{"encoder": {"folder": "os:sep"}}, {"encoder": {"verifier": "os:sep"}}, {"verifier": "os:sep"}])
def test_stored_verifier_that_is_code_is_refused_under_each_of_its_names(tree):
    with pytest.raises(SettingsError, match=r"--set encoder\.verifier=os:sep"):
        refuse_foreign_code(tree, Settings(), "old.jsonl")
    refuse_foreign_code(tree, load_settings(pairs=["verifier=os:sep"]), "old.jsonl")
