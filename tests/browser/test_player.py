"""The player in a real browser: what is pressed, and what is seen."""

import re

import pytest
from playwright.sync_api import expect

from ringlab.draw import play
from tests.draw.made import ring

pytestmark = [pytest.mark.browser]


class Seen:
    """A page with a player on it."""

    def __init__(self, page, player):
        self.page, self.player = page, player
        self.host = page.locator(".ringlab-player")
        self.end = player.data["end"]
        times = [0.0, self.end]
        for bar in player.data["bars"]:
            times += [bar["start"], bar["end"]]
        self.moments = sorted({round(time / self.end, 6) * self.end for time in times})

    def press(self, name):
        self.host.get_by_role("button", name=name, exact=True).click()

    def time(self):
        return float(self.host.get_attribute("data-time"))

    def status(self):
        return self.host.get_by_role("status").text_content()

    def active(self):
        """Bars that are highlighted."""
        found = self.host.locator("svg .active").evaluate_all("all => all.map(e => e.id)")
        return {int(gid.removeprefix("event-")) for gid in found}

    def playing_at(self, time):
        """Bars of the timeline that are under way at a time."""
        return {bar["id"] for bar in self.player.data["bars"] if bar["start"] <= time < bar["end"]}

    def cursor(self):
        """Where the cursor stands on the axis, as a share of it."""
        return self.host.locator(".cursor").evaluate(
            """line => {
              const stage = line.ownerSVGElement.querySelector('#stage path');
              const box = stage.getBoundingClientRect();
              return (line.getBoundingClientRect().left - box.left) / box.width; }"""
        )

    def lines(self):
        return self.host.locator("li").all_text_contents()

    def dimmed(self):
        return set(
            self.host.locator("svg [id^=event-]").evaluate_all(
                "all => all.filter(e => e.style.opacity < 1).map(e => Number(e.id.slice(6)))"
            )
        )


@pytest.fixture
def opened(browser, tmp_path):
    pages, problems = [], []

    def open_player(player, **context):
        page = browser.new_page(viewport={"width": 1000, "height": 800}, **context)
        pages.append(page)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
        page.on("request", lambda request: problems.append(request.url)
                if not request.url.startswith(("file:", "data:")) else None)  # fmt: skip
        page.goto(player.save(tmp_path / "player.html").as_uri())
        return Seen(page, player)

    yield open_player
    for page in pages:
        page.close()
    assert problems == []


@pytest.fixture
def player():
    return play(ring(3, message=2e-4))


def test_at_first_the_whole_timeline_is_seen(opened, player):
    seen = opened(player)
    assert seen.time() == pytest.approx(seen.end)
    assert seen.cursor() == pytest.approx(1, abs=0.01)
    assert seen.active() == set()
    assert "the end" in seen.status()
    assert seen.host.locator("img").count() == 0
    assert seen.host.locator("svg [id^=event-]").count() == len(player.data["bars"])


@pytest.mark.parametrize("clocked", [True, False], ids=["by time", "by step"])
def test_steps_go_from_event_to_event_and_show_what_is_under_way(opened, clocked):
    player = play(ring(3, message=2e-4, clocked=clocked), theme="light" if clocked else "dark")
    seen = opened(player)
    for moment in seen.moments[:6]:
        seen.press("Step")
        assert seen.time() == pytest.approx(moment, abs=seen.end * 1e-5)
        assert seen.active() == seen.playing_at(seen.time())
        assert seen.cursor() == pytest.approx(moment / seen.end, abs=0.01)
        slider = seen.host.get_by_role("slider").input_value()
        assert float(slider) == pytest.approx(moment, abs=seen.end * 1e-5)
        for rank, line in enumerate(seen.lines()):
            bars = [b for b in player.data["bars"] if b["id"] in seen.active()]
            words = {b["words"] for b in bars if b["rank"] == rank}
            assert all(word in line for word in words)
            assert line.startswith(f"rank {rank}: ")
    seen.press("Back")
    assert seen.time() == pytest.approx(seen.moments[4], abs=seen.end * 1e-5)


def test_play_runs_from_the_start_to_the_end_and_pause_stops_it(opened, player):
    seen = opened(player)
    seen.press("Play")
    seen.page.wait_for_timeout(500)
    seen.press("Pause")
    stopped = seen.time()
    assert 0 < stopped < seen.end
    assert seen.active() == seen.playing_at(stopped)
    seen.page.wait_for_timeout(200)
    assert seen.time() == stopped
    seen.press("Play")
    expect(seen.host.get_by_role("status")).to_contain_text("the end", timeout=60_000)
    assert seen.time() == pytest.approx(seen.end)
    expect(seen.host.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_the_slider_scrubs(opened, player):
    seen = opened(player)
    box = seen.host.get_by_role("slider").bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    seen.page.mouse.down()
    for share in (0.75, 0.5, 0.3):
        seen.page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        assert seen.time() / seen.end == pytest.approx(share, abs=0.03)
        assert seen.cursor() == pytest.approx(seen.time() / seen.end, abs=0.01)
        assert seen.active() == seen.playing_at(seen.time())
    seen.page.mouse.up()


def test_the_keyboard_does_all_that_buttons_do(opened, player):
    seen = opened(player)
    seen.page.keyboard.press("Tab")
    keys = seen.page.keyboard
    keys.press("Home")
    assert seen.time() == 0
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    assert seen.time() == pytest.approx(seen.moments[2], abs=seen.end * 1e-5)
    keys.press("ArrowLeft")
    assert seen.time() == pytest.approx(seen.moments[1], abs=seen.end * 1e-5)
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    assert seen.host.get_by_role("combobox").input_value() == "1"
    keys.press("ArrowUp")
    assert seen.host.get_by_role("combobox").input_value() == "0"
    keys.press("Home")
    keys.press(" ")
    seen.page.wait_for_timeout(400)
    keys.press(" ")
    assert 0 < seen.time() < seen.end
    keys.press("End")
    assert seen.time() == pytest.approx(seen.end)


def test_every_control_is_reached_by_tab_and_shows_its_focus(opened, player):
    seen = opened(player)
    reached = []
    for _ in range(6):
        seen.page.keyboard.press("Tab")
        reached.append(seen.page.evaluate(
            """() => { const host = document.activeElement, inside = host.shadowRoot?.activeElement;
                 const one = inside || host;
                 return [one.tagName, getComputedStyle(one).outlineStyle]; }"""
        ))  # fmt: skip
    assert [tag for tag, _ in reached] == ["DIV", "BUTTON", "BUTTON", "BUTTON", "INPUT", "SELECT"]
    assert all(style != "none" for _, style in reached)


def test_a_rank_is_picked_and_the_others_stand_back(opened, player):
    seen = opened(player)
    assert seen.dimmed() == set()
    seen.host.get_by_role("combobox").select_option("1")
    assert seen.dimmed() == {bar["id"] for bar in player.data["bars"] if bar["rank"] != 1}
    seen.press("Step")
    assert re.search("rank 1: .*computes attend", seen.status())
    seen.host.get_by_role("combobox").select_option("all")
    assert seen.dimmed() == set()


def test_who_hears_the_page_is_told_what_it_is(opened, player):
    seen = opened(player)
    heard = seen.host.aria_snapshot()
    assert f'group "Player. {player.data["title"]}"' in heard
    assert 'img "A timeline' in heard
    for control in ('button "Back"', 'button "Play"', 'button "Step"', 'slider "Time"'):
        assert control in heard
    assert 'combobox "Rank"' in heard
    assert "status" in heard
    slider = seen.host.get_by_role("slider")
    assert slider.get_attribute("aria-valuetext") == "the end"
    seen.press("Step")
    assert slider.get_attribute("aria-valuetext") == "0 ms"


def test_who_asked_for_less_motion_sees_it_moment_by_moment(opened, player):
    seen = opened(player, reduced_motion="reduce")
    seen.press("Play")
    seen.page.wait_for_timeout(1000)
    seen.press("Pause")
    assert min(abs(seen.time() - t) for t in seen.moments) < seen.end * 1e-5


def test_two_players_on_one_page_do_not_disturb_each_other(opened, player, browser, tmp_path):
    path = tmp_path / "two.html"
    path.write_text("<!doctype html><meta charset=utf-8>" + player.html() * 2, encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    first, second = page.locator(".ringlab-player").all()
    first.get_by_role("button", name="Step").click()
    assert float(first.get_by_role("slider").input_value()) == 0
    assert float(second.get_by_role("slider").input_value()) > 0
    page.close()
