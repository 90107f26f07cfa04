"""A calculator of memory: sliders in a notebook, and their picture where there is no kernel."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ringlab.draw.memory import draw_memory
from ringlab.draw.picture import Picture
from ringlab.draw.theme import ThemeName
from ringlab.machine import CHIPS
from ringlab.memory import DTYPES, MODELS, Deployment, both

_TOKENS = tuple(2**power for power in range(10, 25))
_RANKS = (1, 2, 4, 8, 16, 32, 64)
_SEQUENCES = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Setting:
    """What the calculator is set to.

    Parameters
    ----------
    model : str
        A name of ``ringlab.memory.MODELS``.
    tokens, sequences : int
        Tokens of each sequence, and how many sequences.
    kv_dtype, weight_dtype : str
        Names of ``ringlab.memory.DTYPES``.
    tp, pp, cp : int
        Ranks of tensor, pipeline and context parallelism.
    card : str
        A name of ``ringlab.machine.CHIPS``.

    Raises
    ------
    ValueError
        If a name is unknown, a number is below 1 or the model cannot be split like that.
    """

    model: str = "Llama 3.1 70B"
    tokens: int = 131_072
    sequences: int = 1
    kv_dtype: str = "bf16"
    weight_dtype: str = "bf16"
    tp: int = 1
    pp: int = 1
    cp: int = 1
    card: str = "h100"

    def __post_init__(self) -> None:
        _check_name("model", self.model, MODELS)
        _check_name("kv_dtype", self.kv_dtype, DTYPES)
        _check_name("weight_dtype", self.weight_dtype, DTYPES)
        _check_name("card", self.card, CHIPS)
        for name in ("tokens", "sequences"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more; got {getattr(self, name)}.")
        self.deployments()

    @property
    def room(self) -> int:
        """Bytes of a card."""
        return int(CHIPS[self.card].memory.value)

    def deployments(self) -> dict[str, Deployment]:
        """One card, each kind of parallelism alone, and all together."""
        together = self.tp * self.pp * self.cp
        return {
            "one card": self._deployment(),
            f"TP {self.tp} alone": self._deployment(tp=self.tp),
            f"PP {self.pp} alone": self._deployment(pp=self.pp),
            f"CP {self.cp} alone": self._deployment(cp=self.cp),
            f"together, {together} card{'s' * (together > 1)}": self.deployment(),
        }

    def deployment(self) -> Deployment:
        """All together."""
        return self._deployment(self.tp, self.pp, self.cp)

    def picture(self, theme: ThemeName = "light") -> Picture:
        """Draw what the fullest rank holds, with the numbers of `findings` in the description."""
        drawn = draw_memory(self.deployments(), self.room, self.tokens, self.sequences, theme=theme)
        told = "; ".join(f"{name}: {value}" for name, value in self.findings().items())
        return Picture(drawn.figure, f"{self.model}. {drawn.alt} {told}.")

    def findings(self) -> dict[str, str]:
        """The numbers of the whole deployment, in words."""
        one = self.deployment()
        longest = one.longest_context(self.room, self.sequences)
        token = max(one.kv_bytes_per_token(rank) for rank in range(0, one.world_size, one.tp))
        made_for = MODELS[self.model].positions
        return {
            "Cards": f"{one.world_size}",
            "KV of a token on a card that has it": both(token),
            "Weights and KV on the fullest card": both(one.peak_bytes(self.tokens, self.sequences)),
            "Longest context that fits": "none, the weights alone are too much"
            if longest is None
            else f"{longest:,} tokens; the model was made for {made_for:,}",
        }

    def _deployment(self, tp: int = 1, pp: int = 1, cp: int = 1) -> Deployment:
        dtypes = DTYPES[self.kv_dtype], DTYPES[self.weight_dtype]
        return Deployment(MODELS[self.model], tp, cp, pp, 1, *dtypes)


class Calculator:
    """Controls and the picture of what they are set to; made by `memory_calculator`.

    Parameters
    ----------
    setting : Setting
        Where it starts.
    theme : {"light", "dark"}

    Attributes
    ----------
    controls : dict of str to ipywidgets widget
        By the name of the field of `Setting` that each sets.
    box : ipywidgets.VBox
        All of it.

    Notes
    -----
    Its output holds the picture beside the widget, so that a notebook that nobody has run, or
    nobody trusts, shows the picture.
    """

    def __init__(self, setting: Setting, theme: ThemeName = "light") -> None:
        widgets = _ipywidgets()
        self._theme = theme
        self._picture = setting.picture(theme)
        cards = [(chip.name, key) for key, chip in CHIPS.items()]
        options: dict[str, tuple[str, Iterable[Any]]] = {
            "model": ("Model", MODELS),
            "card": ("Card", cards),
            "weight_dtype": ("Weights", DTYPES),
            "kv_dtype": ("KV cache", DTYPES),
            "tokens": ("Tokens", _steps(_TOKENS, setting.tokens)),
            "sequences": ("Sequences", _steps(_SEQUENCES, setting.sequences)),
            "tp": ("TP ranks", _steps(_RANKS, setting.tp)),
            "pp": ("PP ranks", _steps(_RANKS, setting.pp)),
            "cp": ("CP ranks", _steps(_RANKS, setting.cp)),
        }
        look = {"style": {"description_width": "6em"}, "layout": {"width": "27em"}}
        self.controls: dict[str, Any] = {}
        for name, (label, choices) in options.items():
            number = isinstance(getattr(setting, name), int)
            kind = widgets.SelectionSlider if number else widgets.Dropdown
            extra = {"continuous_update": False} if number else {}
            self.controls[name] = kind(options=list(choices), value=getattr(setting, name),
                                       description=label, **look, **extra)  # fmt: skip
            self.controls[name].observe(self._update, "value")
        self._result = widgets.HTML(self._shown(setting))
        columns = list(self.controls.values())
        self.box = widgets.VBox([
            widgets.HBox([widgets.VBox(columns[:4]), widgets.VBox(columns[4:])],
                         layout={"flex_flow": "row wrap"}),
            self._result,
        ])  # fmt: skip

    @property
    def setting(self) -> Setting:
        """What the controls say.

        Raises
        ------
        ValueError
            If the model cannot be split like that.
        """
        return Setting(**{name: control.value for name, control in self.controls.items()})

    def __repr__(self) -> str:
        return f"Calculator: {self._picture.alt}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        picture, words = self._picture._repr_mimebundle_()
        return {**self.box._repr_mimebundle_(), **picture, "text/plain": repr(self)}, words

    def _update(self, change: Any) -> None:
        try:
            self._result.value = self._shown(self.setting)
        except ValueError as error:
            self._result.value = f'<p role="alert"><b>Impossible:</b> {html.escape(str(error))}</p>'

    def _shown(self, setting: Setting) -> str:
        self._picture = setting.picture(self._theme)
        image = self._picture._repr_mimebundle_()[0]["image/png"]
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left; padding-right: 1em">{name}</th>'
            f"<td>{value}</td></tr>"
            for name, value in setting.findings().items()
        )
        return (
            f'<img style="max-width: 100%" src="data:image/png;base64,{image}" '
            f'alt="{html.escape(self._picture.alt)}"><table role="status">{rows}</table>'
        )


def memory_calculator(setting: Setting | None = None, *, theme: ThemeName = "light") -> Calculator:
    """Make a calculator of weights and KV cache on cards, for a notebook.

    Parameters
    ----------
    setting : Setting, optional
        Where it starts: Llama 3.1 70B with 131,072 tokens on one H100 if not given.
    theme : {"light", "dark"}

    Returns
    -------
    Calculator
        Shows itself as the last value of a cell. Controls take the keyboard: Tab goes from one
        to the next, arrows change a value.

    Raises
    ------
    ImportError
        Without ipywidgets, which comes with ``ringlab[lab]``.

    Examples
    --------
    >>> from ringlab.draw.calculator import Setting, memory_calculator
    >>> Setting(tp=8).findings()["Longest context that fits"]
    '1,522,443 tokens; the model was made for 131,072'
    >>> calculator = memory_calculator(Setting(tp=8))
    """
    return Calculator(setting or Setting(), theme)


def _steps(choices: tuple[int, ...], value: int) -> list[tuple[str, int]]:
    return [(f"{each:,}", each) for each in sorted({*choices, value})]


def _check_name(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ValueError(f"{what} {name!r} is unknown; choose one of {', '.join(known)}.")


def _ipywidgets() -> Any:
    try:
        import ipywidgets  # type: ignore[import-untyped]  # it has no stubs
    except ImportError as error:
        raise ImportError(
            "the calculator needs ipywidgets; install it with pip install 'ringlab[lab]', or draw "
            "a setting without it: Setting(...).picture()."
        ) from error
    return ipywidgets
