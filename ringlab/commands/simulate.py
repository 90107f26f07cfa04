"""``ringlab simulate``: a model's attention on a machine, priced without having it."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence

from ringlab.machine import Machine
from ringlab.machine.names import examples
from ringlab.memory import MODELS, Model
from ringlab.simulation import DECODE, LAYOUTS, PREFILL, Plan, Task, decode_plan, explain
from ringlab.simulation import prefill_plan as price_prefill
from ringlab.simulation.words import duration, where_time_goes


def main(argv: Sequence[str]) -> int:
    """Price a prefill and a decoded token, and say where the time goes.

    Parameters
    ----------
    argv : sequence of str

    Returns
    -------
    int
        0.
    """
    parser = ArgumentParser(
        prog="ringlab simulate",
        description="Attention of one sequence over all devices of a machine, layer by layer, "
        "from the program itself run on meta tensors. The rest of the model is not in it.",
    )
    parser.add_argument("--machine", type=_machine, default="8x h100-nvlink",
                        help=f"for example {', '.join(map(repr, examples()))}")  # fmt: skip
    parser.add_argument("--model", type=_model, default="Llama 3.1 70B",
                        help=f"one of {', '.join(map(repr, MODELS))}")  # fmt: skip
    parser.add_argument("--tokens", type=_tokens, default="128k",
                        help="of the prompt and of the cache, as 131072, 128k or 1M")  # fmt: skip
    parser.add_argument("--method", choices=list(PREFILL), default="ring", help="of the prefill")
    parser.add_argument("--layout", choices=list(LAYOUTS), default="zigzag", help="of the prefill")
    parser.add_argument("--decode", choices=list(DECODE), default="split_k", help="of decode")
    parser.add_argument("--explain", action="store_true",
                        help="compare all methods and say which wins and why")  # fmt: skip
    parser.add_argument("--sources", action="store_true",
                        help="print the machine's figures with their sources")  # fmt: skip
    options = parser.parse_args(argv)
    try:
        for line in _report(options):
            print(line, flush=True)
    except ValueError as error:
        parser.error(str(error))
    return 0


def _report(options: Namespace) -> Iterator[str]:
    machine: Machine = options.machine
    task = Task(options.model, options.tokens)
    heads = task.heads
    yield (
        f"{task.model.name}: {task.model.layers} layers, {heads.heads} query and {heads.kv_heads} "
        f"KV heads of {heads.head_dim}, {task.tokens} tokens, bfloat16, on {machine.name}"
    )
    if options.sources:
        yield from _sources(machine)
    if options.explain:
        for comparison in explain(task, machine):
            yield ""
            yield from comparison.lines()
        return
    prefill = price_prefill(task, machine, options.method, options.layout)
    yield from _plan(f"prefill, {prefill.name}", prefill)
    decode = decode_plan(task, machine, options.decode)
    yield from _plan(f"a decoded token, {decode.name}", decode)


def _plan(title: str, plan: Plan) -> Iterator[str]:
    yield f"\n{title}: {duration(plan.seconds)} of attention"
    layers = plan.layers
    if layers.simulated < layers.count:
        yield (
            f"  {layers.simulated} of {layers.count} layers simulated; from there on each adds "
            f"exactly {duration(layers.period)}"
        )
    yield f"  where the ranks' time goes (first layer): {where_time_goes(plan.lost)}"
    yield f"  {_hiding(plan)}"


def _hiding(plan: Plan) -> str:
    if plan.ranks == 1:
        return "one device: nothing to communicate"
    factor = plan.hiding()
    if factor == 1:
        return "communication is hidden: less than 1 % of the time waits for it"
    if factor is None:
        return (
            "no bandwidth hides the communication: what remains is latency; fewer, larger "
            "messages or fewer ranks would"
        )
    return f"links {factor:g} times as fast would hide the communication (to below 1 %)"


def _sources(machine: Machine) -> Iterator[str]:
    """Every figure that the price stands on."""
    chip, topology = machine.chip, machine.topology
    figures = {
        f"{chip.name}, bfloat16 peak, FLOP/s": chip.rate("bfloat16"),
        "memory, bytes/s": chip.bandwidth,
        "share of it in streaming kernels": chip.stream,
        "share of the peak in a matrix product": chip.matmul,
        "seconds a launch": chip.launch,
    }
    for link in (topology.inside, topology.between):
        if link is not None:
            figures[f"{link.name}, bytes/s each way"] = link.bandwidth
            figures[f"{link.name}, share reached"] = link.efficiency
    for name, figure in figures.items():
        yield f"  {name}: {figure.value:.4g} ({figure.source}; {figure.date})"
    for benchmark in {id(each): each for each in chip.attention.values()}.values():
        note = f"; {benchmark.note}" if benchmark.note else ""
        yield f"  attention: {benchmark.kernel} ({benchmark.source}; {benchmark.date}{note})"
    source = machine.transport.source
    yield f"  messages: {machine.transport.name} ({source.source}; {source.date})"
    yield from (f"  {note}" for note in chip.notes)


def _machine(name: str) -> Machine:
    try:
        return Machine.named(name)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _model(name: str) -> Model:
    plain = re.sub(r"[\s_-]", "", name.lower())
    for known, model in MODELS.items():
        if re.sub(r"[\s_-]", "", known.lower()) == plain:
            return model
    raise ArgumentTypeError(f"model {name!r} is unknown; the models are {', '.join(MODELS)}.")


def _tokens(text: str) -> int:
    found = re.fullmatch(r"(\d+)([km]?)", text.strip().lower())
    if found is None or int(found[1]) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of tokens; write 131072, 128k or 1M.")
    return int(found[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[found[2]]
