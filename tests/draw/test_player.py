"""What the player hands to the browser: the picture in words and in sight, all bars, no network."""

import base64
import json
import re
from html.parser import HTMLParser

import pytest

from ringlab.draw import draw_timeline, play
from tests.draw.made import ring


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_its_output_is_a_picture_with_words_that_is_there_without_the_script():
    bundle = play(ring(3))._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    image = next(a for tag, a in Elements(bundle["text/html"]).found if tag == "img")
    assert image["alt"] == draw_timeline(ring(3)).alt
    assert bundle["text/plain"] == f"Player: {image['alt']}"
    kind, data = image["src"].split(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(data).decode() == draw_timeline(ring(3)).svg()


def test_nothing_is_fetched_from_anywhere():
    page = play(ring(2)).html()
    svg = draw_timeline(ring(2)).svg()
    for text in (page, svg):
        links = re.findall(r"""(?:src|href|url|import|fetch)\s*[=(]\s*["']?([^"')\s]+)""", text)
        assert {link for link in links if not link.startswith(("#", "data:"))} == set()


@pytest.mark.parametrize("clocked", [True, False])
def test_each_bar_it_plays_is_one_of_the_picture(clocked):
    player = play(ring(4, message=2e-4, clocked=clocked))
    drawn = {
        f"event-{bar['id']}": (bar["start"], bar["end"] - bar["start"])
        for bar in player.data["bars"]
    }
    shown = {
        patch.get_gid(): (patch.get_x(), pytest.approx(patch.get_width()))
        for patch in player.picture.figure.axes[0].patches
        if patch.get_gid().startswith("event-")
    }
    assert drawn == shown
    svg = player.picture.svg()
    assert all(svg.count(f'id="{gid}"') == 1 for gid in drawn)


def test_a_title_cannot_close_the_script():
    player = play(ring(2), title="</script><b>")
    assert player.html().count("</script>") == 1
    text = player.html().rsplit("previousElementSibling, ", 1)[1].split(");\n}</script>")[0]
    assert json.loads(text)["title"] == "</script><b>"


def test_two_runs_give_the_same_output():
    assert play(ring(2)).html() == play(ring(2)).html()


def test_it_is_small_enough_to_store_in_a_notebook():
    assert len(play(ring(4, message=2e-4)).html()) < 200_000


def test_it_is_saved_as_a_page(tmp_path):
    player = play(ring(2), title="W < 3")
    text = player.save(tmp_path / "ring.html").read_text(encoding="utf-8")
    assert "<title>W &lt; 3</title>" in text
    assert player.html() in text


def test_ranks_are_chosen_and_refused_as_in_the_picture():
    assert {bar["rank"] for bar in play(ring(20), ranks=[2, 5]).data["bars"]} == {2, 5}
    with pytest.raises(ValueError, match="ranks="):
        play(ring(20))
