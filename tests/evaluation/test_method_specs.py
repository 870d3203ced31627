"""Specifications of methods on the command line."""

import pytest

from knowhalu.errors import SettingsError
from knowhalu.evaluation.method_specs import MethodSpec, parse_specs


@pytest.mark.parametrize(("text", "spec"), [
    ("knowhalu", MethodSpec("knowhalu", "knowhalu")),
    ("knowhalu:llm", MethodSpec("knowhalu-llm", "knowhalu", "llm")),
    ("knowhalu[delta1=0.5, llm.votes=3]", 
     MethodSpec("knowhalu-delta1-0.5-llm.votes-3", "knowhalu", None, ("knowhalu.delta1=0.5", "llm.votes=3"))),
    ("a=knowhalu:encoder[off_target=false]", MethodSpec("a", "knowhalu", "encoder", ("knowhalu.off_target=false",))),
])  # fmt: skip
def test_spec_has_a_name_a_reasoner_and_settings(text, spec):
    assert parse_specs([text]) == [spec]


def test_specs_are_separated_by_commas_outside_brackets():
    assert [s.name for s in parse_specs(["knowhalu, b=knowhalu[delta1=1,delta2=1]", "trivial-length"])] == [
        "knowhalu",
        "b",
        "trivial-length",
    ]


def test_settings_of_a_spec_take_precedence():
    settings = parse_specs(["knowhalu:encoder[delta1=0.5]"])[0].settings(
        None, ["knowhalu.delta1=0.1", "knowhalu.delta2=0.2", "reasoner=llm"]
    )
    assert (settings.knowhalu.delta1, settings.knowhalu.delta2, settings.reasoner) == (0.5, 0.2, "encoder")


@pytest.mark.parametrize(("texts", "said"), [
    (["knowhallu"], "Did you mean 'knowhalu'"), ([" , "], "no method is named"), (["know halu"], "is no method. Write it as"),
    (["knowhalu[delta1]"], "is no setting of a method"), (["knowhalu[method=x]"], "is no setting of a method"),
    (["knowhalu,knowhalu"], "two methods would be called 'knowhalu'"), (["A=knowhalu,a=knowhalu"], "two methods would be called"),
    (["trivial-length=knowhalu"], "'trivial-length' is the name of a method"),
])  # fmt: skip
def test_invalid_spec_is_refused_with_the_syntax(texts, said):
    with pytest.raises(SettingsError) as told:
        parse_specs(texts)
    assert said in str(told.value)


def test_invalid_setting_is_refused_with_the_method():
    with pytest.raises(SettingsError, match=r"^b: .*knowhalu.nosuch: no such setting"):
        parse_specs(["b=knowhalu[nosuch=1]"])[0].settings(None, [])
    with pytest.raises(SettingsError, match=r"^knowhalu-me: unknown reasoner 'me'. Use knowhalu:encoder or knowhalu:llm"):
        parse_specs(["knowhalu:me"])[0].settings(None, [])
