"""What is known of an operator, and of its calls with the same shapes: looked up, not worked out.

A ring makes the same few calls at each of a million hops. What a call is named, costs and
returns follows from the operator and from the shapes, strides and dtypes of what it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ringlab import operators
from ringlab.operators.sizes import dtype_name, tensors
from ringlab.timeline import Work

_COMMUNICATION = {"c10d", "_c10d_functional", "_c10d_functional_autograd"}
_META = torch.device("meta")

Access = tuple[int, str, bool]
"""Of a tensor argument its place, its name and whether it is written."""

Form = tuple[torch.Size, tuple[int, ...], torch.dtype]
"""Shape, strides and dtype of a tensor without data."""


class Facts(NamedTuple):
    """What an operator is.

    Attributes
    ----------
    func : OpOverload
    unseen : bool
        Whether it touches no data itself: views, and what only starts an operation.
    composite : bool
        Whether it only calls others: torch takes it apart, but not in inference mode.
    accesses : tuple of Access or None
        None for an operator without a schema, a higher-order one: it reads what it is given.
    shapes_only : bool
        Whether all it does without data is to allocate its results.
    """

    func: Any
    unseen: bool
    composite: bool
    accesses: tuple[Access, ...] | None
    shapes_only: bool


class Computed:
    """What calls of an operator with the same shapes have in common; equal only to itself.

    Attributes
    ----------
    name, shape, dtype
        As an event tells them.
    work : Work or None
        None where no formula knows it.
    free : bool
        Whether it costs nothing, so that it is no event.
    forms : tuple of Form or None
        What the call returns, where it need not be made to know that.
    single : bool
        Whether it returns one tensor, and not a tuple of them.
    """

    __slots__ = ("dtype", "forms", "free", "name", "shape", "single", "work")

    def __init__(self, name: str, shape: tuple[int, ...], dtype: str, work: Work | None) -> None:
        self.name, self.shape, self.dtype, self.work = name, shape, dtype, work
        self.free = work is not None and work.kind == "free"
        self.forms: tuple[Form, ...] | None = None
        self.single = False

    def allocate(self) -> Any:
        """Make results as the call would, of tensors without data."""
        assert self.forms is not None
        if not self.forms:
            return None
        made = [
            torch.empty_strided(shape, strides, dtype=dtype, device=_META)
            for shape, strides, dtype in self.forms
        ]
        return made[0] if self.single else tuple(made)


_facts: dict[int, Facts] = {}  # by identity: hashing an operator is slow, and they live for good


def facts_of(func: Any) -> Facts:
    """What is known of an operator; cached."""
    found = _facts.get(id(func))
    if found is None:
        accesses = _accesses(func)
        found = _facts[id(func)] = Facts(
            func, _is_unseen(func), _is_composite(func), accesses, _is_shapes_only(func, accesses)
        )
    return found


class Calls:
    """The calls that the ranks of a run have made so far, by what they were given."""

    def __init__(self) -> None:
        self._known: dict[Any, Computed] = {}

    def made(self, facts: Facts, args: Sequence[Any], kwargs: Mapping[str, Any]
             ) -> tuple[Any, Computed]:  # fmt: skip
        """Call an operator, and say what that computed.

        Notes
        -----
        Where nothing holds data, and the operator does nothing then but allocate its results,
        a call that was made before is not made again: its results are allocated.
        """
        func = facts.func
        key: list[Any] = [func]
        try:
            without_data = _sign(args, key)
            if kwargs:
                key.append(tuple(kwargs))
                without_data = _sign(kwargs.values(), key) and without_data
            signature = (id(func), *key[1:])
            known = self._known.get(signature)
        except TypeError:  # an argument that has no hash
            result = func(*args, **kwargs)
            return result, _describe(func, args, kwargs, result)
        if known is not None and known.forms is not None and without_data:
            return known.allocate(), known
        result = func(*args, **kwargs)
        if known is None:
            known = _describe(func, args, kwargs, result)
            if not _depends_on_data(func, args):
                self._known[signature] = known
                if facts.shapes_only and without_data:
                    known.forms, known.single = _forms(result), isinstance(result, Tensor)
        return result, known


def _sign(values: Iterable[Any], key: list[Any]) -> bool:
    """Add to `key` what a call follows from; whether there are tensors, all without data."""
    without_data = True
    for value in values:
        kind = type(value)
        if kind is Tensor or isinstance(value, Tensor):
            meta = value.is_meta
            key += (value.shape, value.stride(), value.dtype, meta)
            without_data = without_data and meta
        elif kind is list or kind is tuple:
            key += (list, len(value))
            without_data = _sign(value, key) and without_data
        else:
            key += (kind, value)  # 1, 1.0 and True are equal, and not the same
    return without_data


def _forms(result: Any) -> tuple[Form, ...] | None:
    """The forms of results; None if one of them is not a plain tensor without data."""
    if result is None:
        return ()
    parts = [result] if isinstance(result, Tensor) else list(result)
    if not all(type(part) is Tensor and part.is_meta for part in parts):
        return None
    return tuple((part.shape, part.stride(), part.dtype) for part in parts)


def _depends_on_data(func: Any, args: Sequence[Any]) -> bool:
    """Whether two calls with the same shapes may differ in work, as by what a mask allows."""
    if torch.Tag.dynamic_output_shape in getattr(func, "tags", ()):
        return True
    return any(tensor.dtype == torch.bool and not tensor.is_meta for tensor in tensors(args))


def _describe(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Computed:
    work = operators.work(func, args, kwargs, result)
    schema = getattr(func, "_schema", None)  # a higher-order operator has none
    name = func.name() if schema is None else schema.name
    sample = next(tensors((args, list(kwargs.values()), result)), None)
    if sample is None:
        return Computed(name, (), "", work)
    return Computed(name, tuple(sample.shape), dtype_name(sample.dtype), work)


def _is_unseen(func: Any) -> bool:
    if getattr(func, "namespace", "") in _COMMUNICATION or getattr(func, "is_view", False):
        return True
    return torch.Tag.inplace_view in getattr(func, "tags", ())


def _is_composite(func: Any) -> bool:
    has_kernel = getattr(func, "has_kernel_for_dispatch_key", None)
    if has_kernel is None:
        return False
    return bool(has_kernel(torch._C.DispatchKey.CompositeImplicitAutograd))


def _accesses(func: Any) -> tuple[Access, ...] | None:
    schema = getattr(func, "_schema", None)
    if schema is None:
        return None
    return tuple(
        (place, arg.name, arg.alias_info is not None and arg.alias_info.is_write)
        for place, arg in enumerate(schema.arguments)
        if "Tensor" in str(arg.type)
    )


def _is_shapes_only(func: Any, accesses: tuple[Access, ...] | None) -> bool:
    """Whether, by its schema, an operator of this library does nothing to tensors without data.

    It returns tensors of its own, or writes into those it is given and returns nothing.
    """
    if accesses is None or getattr(func, "namespace", "") != "ringlab":
        return False
    return not func._schema.returns or not any(writes for _, _, writes in accesses)
