from __future__ import annotations

import pytest

from ringlab import cli


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(["simulate", *argv]) == 0
    return capsys.readouterr().out


def test_it_prices_a_prefill_and_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--machine", "4x h100-nvlink", "--model", "llama-3.1-8b",
               "--tokens", "32k", "--method", "all_gather", "--layout", "striped")  # fmt: skip
    assert "Llama 3.1 8B: 32 layers, 32 query and 8 KV heads of 128, 32768 tokens" in text
    assert "prefill, all_gather striped: " in text
    assert "of 32 layers simulated; from there on each adds exactly" in text
    assert "a decoded token, split_k: " in text
    assert text.count("where the ranks' time goes") == 2


def test_it_compares_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--machine", "2x a100-nvlink", "--model", "Llama 3.1 8B",
               "--tokens", "8k", "--explain")  # fmt: skip
    assert "→" in text
    assert "one device" in text


def test_it_shows_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--machine", "2x mi300x", "--tokens", "1k", "--sources")
    for part in ("AMD Instinct MI300X data sheet", "arXiv:2307.08691", "tuning.cc", "no published"):
        assert part in text


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["--machine", "8x tpu"], "no chip 'tpu'"),
        (["--model", "GPT-9"], "model 'GPT-9' is unknown"),
        (["--model", "DeepSeek-V3"], "latent vector"),
        (["--tokens", "many"], "no number of tokens"),
        (["--method", "ulysses"], "invalid choice"),
    ],
)
def test_bad_input_is_refused_in_words(
    argv: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["simulate", *argv])
    assert part in capsys.readouterr().err
