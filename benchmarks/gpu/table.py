"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def tables(data: Mapping[str, Any]) -> str:
    """Every part's table, what was left out, and where it was measured."""
    parts = data["parts"]
    shown = [f"{title}\n\n{_table(columns, parts[name])}" for name, title, columns in TABLES
             if parts.get(name)]  # fmt: skip
    left_out = [f"* Left out: {reason}" for reason in data["left_out"]]
    return "\n\n".join([*shown, *(["\n".join(left_out)] if left_out else []), conditions(data)])


def conditions(data: Mapping[str, Any]) -> str:
    """Tell hardware, versions and date."""
    machine, scale = data["machine"], data["scale"]
    where = f"{machine['cores']} cores of an {machine['cpu']}"
    if machine["device"] == "cuda":
        links = f", linked by {machine['link']}" if machine["link"] else ""
        where = (
            f"{machine['devices']} of {machine['gpu']} ({machine['gpu_memory_gib']} GiB{links}), "
            f"driver {machine['driver']}, CUDA {machine['cuda']}, NCCL {machine['nccl']}"
        )
    return (
        f"{machine['ranks']} ranks on {where}; {scale['tokens']:,} tokens a rank, "
        f"{scale['heads']} query heads on {scale['kv_heads']} KV heads, D = {scale['dim']}, "
        f"{scale['dtype']}; medians of {scale['rounds']} rounds in turns; torch "
        f"{machine['torch']}, ringlab {machine['ringlab']}, {machine['date'][:10]}."
    )


def _ms(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name] * 1e3:.3f}" if name in row else "-"


def _said(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:,}" if isinstance(row[name], int) else str(row[name])


def _share(name: str) -> Callable[[Row], str]:
    return lambda row: "-" if row[name] is None else f"{row[name]:.1%}"


def _mask(row: Row) -> str:
    return "causal" if row["causal"] else "full"


def _errors(row: Row) -> str:
    if "failure" in row:
        return str(row["failure"])
    return ", ".join(f"{error:.1e}" for error in row["errors"].values())


def _rate(row: Row) -> str:
    return f"{row['forward_flops'] / 1e12:.2f}" if "forward_flops" in row else "-"


Columns = Mapping[str, Callable[[Row], str]]
TABLES: tuple[tuple[str, str, Columns], ...] = (
    ("kernels", "Kernels, errors relative to float64:", {
        "kernel": _said("kernel"), "mask": _mask, "error of out, dQ, dK, dV": _errors,
        "forward ms": _ms("forward_s"), "backward ms": _ms("backward_s"),
        "forward TFLOP/s": _rate,
    }),
    ("blockwise", "One device, keys in N blocks, against a single call (1 is parity, more is "
     "faster):", {
        "phase": _said("phase"), "N": _said("blocks"), "ms": _ms("s"),
        "single call ms": _ms("single_s"), "ratio": lambda row: f"{row['ratio']:.3f}",
    }),
    ("ring", "Causal ring attention against the ideal, one device's time over the devices:", {
        "layout": _said("layout"), "phase": _said("phase"), "ms": _ms("s"),
        "ideal ms": _ms("ideal_s"), "of ideal": _share("share"),
    }),
    ("overlap", "Messages under attention, causal zig-zag, forward, by the profiler:", {
        "rank": _said("rank"), "messages ms": _ms("messages_s"),
        "attention ms": _ms("attention_s"), "hidden": _share("hidden"),
    }),
    ("decode", "Decode of one token, waited for before the next:", {
        "tokens in the cache": _said("context"), "method": _said("method"), "ms": _ms("s"),
    }),
)  # fmt: skip


def _table(columns: Columns, rows: Sequence[Row]) -> str:
    lines = [f"| {' | '.join(columns)} |", "| --- |" + " --- |" * (len(columns) - 1)]
    lines += [f"| {' | '.join(tell(row) for tell in columns.values())} |" for row in rows]
    return "\n".join(lines)
