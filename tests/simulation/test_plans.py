from __future__ import annotations

import pytest
import torch

from ringlab.machine import Machine
from ringlab.memory import MODELS
from ringlab.simulation import DECODE, Task, alone, decode_plan, explain, prefill_plan
from ringlab.simulation.programs import record_decode, record_prefill
from ringlab.simulation.words import duration

LLAMA = MODELS["Llama 3.1 8B"]
NODE = Machine.named("4x h100-nvlink")


def test_a_prefill_is_the_causal_attention_of_every_layer() -> None:
    task = Task(LLAMA, 32768)
    plan = prefill_plan(task, NODE, "ring", "zigzag")
    assert plan.layers.count == 32
    pairs = 32768 * 32769 // 2
    flops = sum(e.work.flops for e in plan.recording if e.work)
    assert flops == 4 * 128 * 32 * pairs
    # No faster than the kernel's best published speed on four chips, nor absurdly slower.
    fastest = 32 * flops / 4 / 648e12
    assert fastest < plan.seconds < 1.5 * fastest


@pytest.mark.parametrize("method", DECODE)
def test_a_decoded_token_reads_the_cache_and_its_filling_is_not_in_the_price(method: str) -> None:
    recording = record_decode(LLAMA.attention, torch.bfloat16, 3, 3001, method)
    cache = 2 * 8 * 128 * 3001 * 2
    read = sum(e.work.bytes_read for e in recording if e.work and e.work.kind == "attention")
    copies = 1 if method == "split_k" else 3
    assert cache * copies < read < 1.1 * cache * copies
    written = sum(e.work.bytes_written for e in recording if e.work and e.work.kind == "memory")
    assert written < cache * (1.5 if method == "split_k" else 8)


def test_a_decoded_token_takes_the_time_to_read_the_cache() -> None:
    plan = alone(Task(LLAMA, 131072), NODE, decode=True)
    cache = 32 * 2 * 8 * 128 * 131072 * 2
    assert plan.seconds == pytest.approx(cache / 3.0e12, rel=0.1)


def test_long_shards_hide_the_ring_and_short_ones_between_nodes_do_not() -> None:
    task, slow = Task(LLAMA, 1 << 20), Machine.named("2x2 h100-eth100")
    assert prefill_plan(task, slow, "ring", "zigzag").hiding() == 1
    short = prefill_plan(Task(LLAMA, 16384), slow, "ring", "zigzag")
    factor = short.hiding()
    assert factor is not None
    assert factor > 2


def test_no_bandwidth_hides_the_latency_of_decode() -> None:
    assert decode_plan(Task(LLAMA, 8192), NODE, "split_k").hiding() is None


def test_the_recording_of_a_prefill_is_the_same_every_time() -> None:
    from ringlab import ZigZag

    one, two = (
        record_prefill(LLAMA.attention, torch.bfloat16, 2, 100, "ring", ZigZag()) for _ in range(2)
    )
    assert one == two


def test_a_model_with_a_latent_cache_is_refused() -> None:
    with pytest.raises(ValueError, match="latent vector"):
        Task(MODELS["DeepSeek-V3"], 1024)
    with pytest.raises(ValueError, match="at least one token"):
        Task(LLAMA, 0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5, "1.50 s"),
        (0.0123, "12.3 ms"),
        (4.2e-5, "42.0 µs"),
        (123.4, "123 s"),
        (2e-9, "0.00 µs"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_explain_names_the_winner_and_says_where_a_ring_does_not_belong() -> None:
    prefill, decode = explain(Task(LLAMA, 131072), NODE)
    assert len(prefill.plans) == 7
    assert prefill.winner.name == "ring zigzag"
    text = "\n".join(prefill.lines())
    assert "→ ring zigzag on 4 devices" in text
    assert "ring contiguous takes 1.7" in text
    assert "ranks wait for others that have more to compute" in text
    assert "Do not use a ring" not in text
    assert decode.winner.name == "split_k"
    text = "\n".join(decode.lines())
    assert "Do not use a ring here: split_k takes" in text
    assert "ranks wait for messages" in text


def test_explain_prefers_one_device_where_many_do_not_pay() -> None:
    _, decode = explain(Task(LLAMA, 1024), NODE)
    assert decode.winner.name == "one device"


def test_one_device_has_nothing_to_compare() -> None:
    prefill, decode = explain(Task(LLAMA, 1024), Machine.named("1x h100-nvlink"))
    assert [len(prefill.plans), len(decode.plans)] == [1, 1]
