"""The calculator shows what `Deployment` computes, whatever its controls are moved to."""

from __future__ import annotations

import re
import sys
from dataclasses import fields, replace

import pytest

from ringlab.draw.calculator import Setting, memory_calculator
from ringlab.memory import DTYPES, GB, MODELS, Deployment, both

BIG = MODELS["Llama 3.1 70B"]


def shown(calculator):
    return calculator.box.children[-1].value


def test_its_numbers_are_those_of_the_deployment():
    found = Setting(tokens=1_048_576, sequences=3, tp=8, cp=2, card="h200").findings()
    one = Deployment(BIG, tp=8, cp=2)
    assert list(found.values()) == [
        "16",
        both(one.kv_bytes_per_token(0)),
        both(one.peak_bytes(1_048_576, 3)),
        f"{one.longest_context(141 * GB, 3):,} tokens; the model was made for 131,072",
    ]


def test_where_not_even_the_weights_fit_it_says_so():
    assert "weights alone" in Setting(cp=64).findings()["Longest context that fits"]


def test_its_picture_compares_each_kind_of_parallelism_with_all_together():
    setting = Setting(tp=8, pp=2, cp=4, kv_dtype="fp8", weight_dtype="int8")
    given = setting.deployments()
    dtypes = {"kv_dtype": DTYPES["fp8"], "weight_dtype": DTYPES["int8"]}
    assert list(given.values()) == [
        Deployment(BIG, **ranks, **dtypes)
        for ranks in ({}, {"tp": 8}, {"pp": 2}, {"cp": 4}, {"tp": 8, "pp": 2, "cp": 4})
    ]
    labels = [text.get_text() for text in setting.picture().figure.axes[0].get_yticklabels()]
    assert labels == list(given)
    assert "together, 64 cards" in labels


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "GPT-5"}, "model 'GPT-5' is unknown; choose one of Llama 2 7B"),
        ({"kv_dtype": "int4"}, "kv_dtype 'int4' is unknown; choose one of fp64"),
        ({"weight_dtype": "int4"}, "weight_dtype 'int4' is unknown"),
        ({"card": "h1000"}, "card 'h1000' is unknown; choose one of a100, h100"),
        ({"tokens": 0}, "tokens is 1 or more; got 0"),
        ({"sequences": 0}, "sequences is 1 or more; got 0"),
        ({"model": "Qwen2.5 0.5B", "tp": 8}, "14 query heads cannot be dealt to tp=8"),
    ],
)
def test_what_makes_no_sense_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        Setting(**change)


def test_each_field_has_a_control_with_a_label_of_its_own():
    controls = memory_calculator().controls
    assert set(controls) == {field.name for field in fields(Setting)}
    assert [control.description for control in controls.values()] == [
        "Model", "Card", "Weights", "KV cache", "Tokens", "Sequences", "TP ranks", "PP ranks",
        "CP ranks",
    ]  # fmt: skip


MOVES = {
    "model": "DeepSeek-V3", "card": "b200", "weight_dtype": "fp8", "kv_dtype": "int8",
    "tokens": 2**20, "sequences": 8, "tp": 4, "pp": 8, "cp": 16,
}  # fmt: skip


def test_moving_a_control_changes_what_is_shown():
    calculator, expected = memory_calculator(), Setting()
    for name, value in MOVES.items():
        before = shown(calculator)
        calculator.controls[name].value = value
        expected = replace(expected, **{name: value})
        assert calculator.setting == expected
        assert shown(calculator) != before, name
        for found in expected.findings().values():
            assert f"<td>{found}</td>" in shown(calculator)


def test_an_impossible_split_is_explained_and_one_can_go_on():
    calculator = memory_calculator()
    calculator.controls["tp"].value = 8
    calculator.controls["model"].value = "Qwen2.5 0.5B"
    assert 'role="alert"' in shown(calculator)
    assert "14 query heads cannot be dealt to tp=8" in shown(calculator)
    calculator.controls["tp"].value = 2
    assert "Longest context that fits" in shown(calculator)


def test_values_between_those_of_the_sliders_can_be_given():
    calculator = memory_calculator(Setting(tokens=100_000, sequences=3, pp=5))
    assert [calculator.controls[name].value for name in ("tokens", "sequences", "pp")] == [
        100_000,
        3,
        5,
    ]


def test_its_output_is_the_widget_and_a_picture_with_the_same_words():
    calculator = memory_calculator(Setting(tp=8))
    data, metadata = calculator._repr_mimebundle_()
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    alt = metadata["image/png"]["alt"]
    assert data["text/plain"] == f"Calculator: {alt}"
    assert "1,522,443 tokens" in alt
    assert re.search(r'<img [^>]*alt="([^"]+)"', shown(calculator))[1] == alt.replace("'", "&#x27;")


def test_the_picture_is_that_of_where_it_stands():
    calculator = memory_calculator()
    calculator.controls["cp"].value = 4
    assert "together, 4 cards" in calculator._repr_mimebundle_()[0]["text/plain"]


def test_without_ipywidgets_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"ringlab\[lab\].*Setting\(...\).picture\(\)"):
        memory_calculator()
