"""Bars of memory are the bytes of the fullest rank, and the line stands where the card is full."""

import pytest

from ringlab.draw import draw_memory
from ringlab.memory import GB, MODELS, Deployment
from tests.draw.specimens import deployments


def bars(picture, place):
    axis = picture.figure.axes[0]
    return {
        p.get_gid(): p for p in axis.patches if (p.get_gid() or "").startswith(f"memory-{place}")
    }


@pytest.mark.parametrize(("length", "sequences"), [(1000, 1), (131_071, 3)])
def test_a_bar_is_weights_then_cache_of_the_fullest_rank(length, sequences):
    given = deployments()
    picture = draw_memory(given, 80 * GB, length, sequences)
    for place, one in enumerate(given.values()):
        weights, cache = bars(picture, place).values()
        assert (weights.get_width() + cache.get_width()) * GB == pytest.approx(
            one.peak_bytes(length, sequences)
        )
        assert cache.get_x() == pytest.approx(weights.get_width())
        assert weights.get_hatch() != cache.get_hatch()


def test_the_line_stands_where_the_card_is_full():
    line = draw_memory(deployments(), 80 * GB, 1000).figure.axes[0].lines[0]
    assert list(line.get_xdata()) == [80, 80]


@pytest.mark.parametrize("card", [10 * GB, 80 * GB, 1000 * GB])
def test_verdicts_are_those_of_the_deployments(card):
    given = deployments()
    picture = draw_memory(given, card, 131_072, 2)
    texts = [t.get_text() for t in picture.figure.axes[0].texts]
    for text, one in zip(texts, given.values(), strict=True):
        assert text.endswith("fits") == one.fits(card, 131_072, 2)


def test_the_title_names_what_fits():
    some = {"one": Deployment(MODELS["Llama 3.1 70B"])}
    assert "None of them fits" in draw_memory(some, GB, 1).alt
    assert "All of them fit" in draw_memory(some, 1000 * GB, 1).alt
    assert "only these fit: TP 4; TP 4, fp8" in draw_memory(deployments(), 80 * GB, 131_072).alt
    one = {"TP 8": Deployment(MODELS["Llama 3.1 70B"], tp=8), **some}
    assert "On cards of 80 GB only TP 8 fits" in draw_memory(one, 80 * GB, 131_072).alt


def test_the_fullest_rank_is_found_wherever_it_stands():
    split = {"all": Deployment(MODELS["Llama 3.1 70B"], tp=2, cp=3, pp=3, dp=2)}
    weights, cache = bars(draw_memory(split, GB, 1000, 3), 0).values()
    most = max(split["all"].total_bytes(rank, 1000, 3) for rank in range(36))
    assert (weights.get_width() + cache.get_width()) * GB == pytest.approx(most)


def test_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one deployment"):
        draw_memory({}, GB, 1)
