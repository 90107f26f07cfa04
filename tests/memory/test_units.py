from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlab.memory import GB, GIB, KB, KIB, MB, MIB, TB, TIB, binary, both, decimal, parse


def test_units_of_1000_and_of_1024_are_what_their_names_say() -> None:
    assert (KB, MB, GB, TB) == (10**3, 10**6, 10**9, 10**12)
    assert (KIB, MIB, GIB, TIB) == (2**10, 2**20, 2**30, 2**40)


def test_claim_c1_320_kib_are_327_68_kb() -> None:
    assert both(327_680) == "320 KiB (327.68 kB)"


@pytest.mark.parametrize(
    ("amount", "in_1024", "in_1000"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1000 B", "1 kB"),
        (1023, "1023 B", "1.02 kB"),
        (1024, "1 KiB", "1.02 kB"),
        (1025, "1 KiB", "1.03 kB"),
        (42_949_672_960, "40 GiB", "42.95 GB"),
        (41_943_040_000, "39.06 GiB", "41.94 GB"),
        (141_107_412_992, "131.42 GiB", "141.11 GB"),
        (2**20 - 1, "1 MiB", "1.05 MB"),
        (999_995, "976.56 KiB", "1 MB"),
        (999_994, "976.56 KiB", "999.99 kB"),
        (5 * 2**50, "5120 TiB", "5629.5 TB"),
    ],
)
def test_amounts_are_written_to_two_decimals(amount: int, in_1024: str, in_1000: str) -> None:
    assert (binary(amount), decimal(amount)) == (in_1024, in_1000)


def test_small_amounts_are_written_once() -> None:
    assert both(999) == "999 B"
    assert both(1000) == "1000 B (1 kB)"


@given(st.integers(min_value=0, max_value=2**70))
def test_what_is_written_is_within_half_a_hundredth_of_its_unit(amount: int) -> None:
    for write, base in ((binary, 1024), (decimal, 1000)):
        number, unit = write(amount).split()
        size = base ** ["B", "k", "M", "G", "T"].index(unit[0].replace("K", "k"))
        whole, _, part = number.partition(".")
        hundredths = int(whole) * 100 + int(part.ljust(2, "0"))
        assert abs(200 * amount - 2 * hundredths * size) <= size
        assert unit[0] == "T" or hundredths < base * 100


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("80 GB", 80 * 10**9),
        ("80GiB", 80 * 2**30),
        (" 1.5 KiB ", 1536),
        ("0 B", 0),
        ("327.68 kB", 327_680),
        ("0.141 TB", 141 * 10**9),
    ],
)
def test_amounts_are_read(text: str, amount: int) -> None:
    assert parse(text) == amount


@pytest.mark.parametrize("text", ["", "80", "GB", "-1 GB", "80 gb", "8e3 MB", "80 GB 2", "1,000 B"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no amount of memory; write a number and one of B, kB"):
        parse(text)


def test_kb_is_refused_because_it_means_two_things() -> None:
    with pytest.raises(ValueError, match="KB can mean 1000 or 1024 bytes: write kB or KiB"):
        parse("320 KB")


def test_parts_of_a_byte_are_refused() -> None:
    with pytest.raises(ValueError, match="give a whole number of bytes"):
        parse("0.0001 kB")


@pytest.mark.parametrize("write", [binary, decimal, both])
def test_negative_amounts_are_refused(write: object) -> None:
    with pytest.raises(ValueError, match="0 bytes or more; got -1"):
        write(-1)  # type: ignore[operator]
