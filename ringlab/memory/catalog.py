"""Shapes of published models, each with its source.

The figures are those of `config.json` in the named repository on Hugging Face; `published` is
the number of parameters that the repository counts in its safetensors files. A test computes
that number from the shape, to the last parameter.
"""

from __future__ import annotations

from dataclasses import replace

from ringlab.memory.attention import GroupedQuery, Latent
from ringlab.memory.feed_forward import Dense, Experts
from ringlab.memory.model import Model

_LLAMA_3_8B = Model(
    "Llama 3 8B",
    hidden=4096,
    layers=32,
    vocabulary=128_256,
    attention=GroupedQuery(32, 8, 128),
    feed_forward=Dense(14336),
    positions=8192,
    published=8_030_261_248,
    source="meta-llama/Meta-Llama-3-8B, 2024-04; arXiv 2407.21783, table 3",
)

_LLAMA_3_70B = Model(
    "Llama 3 70B",
    hidden=8192,
    layers=80,
    vocabulary=128_256,
    attention=GroupedQuery(64, 8, 128),
    feed_forward=Dense(28672),
    positions=8192,
    published=70_553_706_496,
    source="meta-llama/Meta-Llama-3-70B, 2024-04; arXiv 2407.21783, table 3",
)

_ENTRIES = (
    Model(
        "Llama 2 7B",
        hidden=4096,
        layers=32,
        vocabulary=32000,
        attention=GroupedQuery(32, 32, 128),
        feed_forward=Dense(11008),
        positions=4096,
        published=6_738_415_616,
        source="meta-llama/Llama-2-7b-hf, 2023-07; arXiv 2307.09288",
    ),
    _LLAMA_3_8B,
    replace(
        _LLAMA_3_8B,
        name="Llama 3.1 8B",
        positions=131_072,
        source="meta-llama/Llama-3.1-8B, 2024-07; arXiv 2407.21783, table 3",
    ),
    _LLAMA_3_70B,
    replace(
        _LLAMA_3_70B,
        name="Llama 3.1 70B",
        positions=131_072,
        source="meta-llama/Llama-3.1-70B, 2024-07; arXiv 2407.21783, table 3",
    ),
    Model(
        "Llama 3.1 405B",
        hidden=16384,
        layers=126,
        vocabulary=128_256,
        attention=GroupedQuery(128, 8, 128),
        feed_forward=Dense(53248),
        positions=131_072,
        published=405_853_388_800,
        source="meta-llama/Llama-3.1-405B, 2024-07; arXiv 2407.21783, table 3",
    ),
    Model(
        "Qwen2.5 0.5B",
        hidden=896,
        layers=24,
        vocabulary=151_936,
        attention=GroupedQuery(14, 2, 64, bias=True),
        feed_forward=Dense(4864),
        positions=32768,
        published=494_032_768,
        source="Qwen/Qwen2.5-0.5B, 2024-09; arXiv 2412.15115, table 1",
        tied=True,
    ),
    Model(
        "Qwen2.5 7B",
        hidden=3584,
        layers=28,
        vocabulary=152_064,
        attention=GroupedQuery(28, 4, 128, bias=True),
        feed_forward=Dense(18944),
        positions=131_072,
        published=7_615_616_512,
        source="Qwen/Qwen2.5-7B, 2024-09; arXiv 2412.15115, table 1",
    ),
    Model(
        "Qwen2.5 32B",
        hidden=5120,
        layers=64,
        vocabulary=152_064,
        attention=GroupedQuery(40, 8, 128, bias=True),
        feed_forward=Dense(27648),
        positions=131_072,
        published=32_763_876_352,
        source="Qwen/Qwen2.5-32B, 2024-09; arXiv 2412.15115, table 1",
    ),
    Model(
        "Qwen2.5 72B",
        hidden=8192,
        layers=80,
        vocabulary=152_064,
        attention=GroupedQuery(64, 8, 128, bias=True),
        feed_forward=Dense(29568),
        positions=131_072,
        published=72_706_203_648,
        source="Qwen/Qwen2.5-72B, 2024-09; arXiv 2412.15115, table 1",
    ),
    Model(
        "Qwen3 8B",
        hidden=4096,
        layers=36,
        vocabulary=151_936,
        attention=GroupedQuery(32, 8, 128, qk_norm=True),
        feed_forward=Dense(12288),
        positions=40960,
        published=8_190_735_360,
        source="Qwen/Qwen3-8B, 2025-04; arXiv 2505.09388, table 1",
    ),
    Model(
        "Qwen3 32B",
        hidden=5120,
        layers=64,
        vocabulary=151_936,
        attention=GroupedQuery(64, 8, 128, qk_norm=True),
        feed_forward=Dense(25600),
        positions=40960,
        published=32_762_123_264,
        source="Qwen/Qwen3-32B, 2025-04; arXiv 2505.09388, table 1",
    ),
    Model(
        "Qwen3 30B-A3B",
        hidden=2048,
        layers=48,
        vocabulary=151_936,
        attention=GroupedQuery(32, 4, 128, qk_norm=True),
        feed_forward=Experts(128, 8, 768),
        positions=40960,
        published=30_532_122_624,
        source="Qwen/Qwen3-30B-A3B, 2025-04; arXiv 2505.09388, table 2",
    ),
    Model(
        "Qwen3 235B-A22B",
        hidden=4096,
        layers=94,
        vocabulary=151_936,
        attention=GroupedQuery(64, 4, 128, qk_norm=True),
        feed_forward=Experts(128, 8, 1536),
        positions=40960,
        published=235_093_634_560,
        source="Qwen/Qwen3-235B-A22B, 2025-04; arXiv 2505.09388, table 2",
    ),
    Model(
        "Mistral 7B",
        hidden=4096,
        layers=32,
        vocabulary=32000,
        attention=GroupedQuery(32, 8, 128),
        feed_forward=Dense(14336),
        positions=32768,
        published=7_241_732_096,
        source="mistralai/Mistral-7B-v0.1, 2023-09; arXiv 2310.06825, table 1",
    ),
    Model(
        "Mixtral 8x7B",
        hidden=4096,
        layers=32,
        vocabulary=32000,
        attention=GroupedQuery(32, 8, 128),
        feed_forward=Experts(8, 2, 14336),
        positions=32768,
        published=46_702_792_704,
        source="mistralai/Mixtral-8x7B-v0.1, 2023-12; arXiv 2401.04088, table 1",
    ),
    Model(
        "Mistral Large 2",
        hidden=12288,
        layers=88,
        vocabulary=32768,
        attention=GroupedQuery(96, 8, 128),
        feed_forward=Dense(28672),
        positions=131_072,
        published=122_610_069_504,
        source="mistralai/Mistral-Large-Instruct-2407, 2024-07",
    ),
    Model(
        "Gemma 2B",
        hidden=2048,
        layers=18,
        vocabulary=256_000,
        attention=GroupedQuery(8, 1, 256),
        feed_forward=Dense(16384),
        positions=8192,
        published=2_506_172_416,
        source="google/gemma-2b, 2024-02; arXiv 2403.08295, table 1",
        tied=True,
    ),
    Model(
        "DeepSeek-V3",
        hidden=7168,
        layers=61,
        vocabulary=129_280,
        attention=Latent(
            128, query_rank=1536, latent=512, rope_dim=64, nope_dim=128, value_dim=128
        ),
        feed_forward=Experts(256, 8, 2048, shared=1, router_bias=True),
        positions=163_840,
        published=671_026_419_200,
        source="deepseek-ai/DeepSeek-V3, 2024-12, without the multi-token prediction module; "
        "arXiv 2412.19437, section 4.2",
        first_layers=(Dense(18432),) * 3,
    ),
)

MODELS: dict[str, Model] = {model.name: model for model in _ENTRIES}
"""The models by name, from MHA (Llama 2) over GQA to MQA (Gemma) and MLA (DeepSeek-V3)."""
