"""A stored player may hold the project's own script, and no other."""

from base64 import b64encode

import pytest

from ringlab.draw import play
from ringlab.draw.player import player_html
from tests.draw.made import ring
from tests.notebooks.stored_player import is_own_player, without_own_script


@pytest.fixture(scope="module")
def stored():
    return play(ring(3)).html()


def test_what_play_makes_is_known_and_leaves_its_picture(stored):
    assert is_own_player(stored)
    shown = without_own_script(stored)
    assert shown.startswith("<div")
    assert "<script" not in shown
    assert 'alt="A timeline' in shown


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("function ringlabPlayer", "alert(1); function ringlabPlayer"),
        ("</script>", "</script><script>alert(1)</script>"),
        ("<div class", "<b onclick='x()'>press</b><div class"),
        ('alt="A', 'onload="x()" alt="A'),
        ('{"title"', '{"extra": alert(1), "title"'),
    ],
    ids=["changed", "another after it", "before it", "in the image", "in the data"],
)
def test_any_other_script_is_noticed(stored, before, after):
    assert before in stored
    changed = stored.replace(before, after, 1)
    assert not is_own_player(changed)
    assert without_own_script(changed) == changed


@pytest.mark.parametrize(
    "svg",
    [
        "<svg><script>x()</script></svg>",
        "<svg onload='x()'/>",
        "<svg><foreignObject/></svg>",
        '<svg><a href="javascript:x()"/></svg>',
        '<svg><use xlink:href="https://elsewhere/"/></svg>',
    ],
)
def test_a_picture_that_would_run_something_is_noticed(svg):
    assert is_own_player(player_html("<svg/>", "A picture.", {"title": "fine"}))
    assert not is_own_player(player_html(svg, "A picture.", {"title": "fine"}))


def test_markup_in_the_data_is_noticed():
    paper = "</style><img src=x onerror=x()>"
    assert not is_own_player(player_html("<svg/>", "A picture.", {"paper": paper}))


def test_what_is_no_player_is_no_player():
    picture = b64encode(b"<svg/>").decode()
    assert not is_own_player(f'<img src="data:image/svg+xml;base64,{picture}" alt="A picture.">')
