// Turns the picture of a timeline into a player: play, step, scrub, pick a rank.
// `host` holds the picture as an <img>; `data` comes from ringlab/draw/player.py.
function ringlabPlayer(host, data) {
  if (host.dataset.ready) return;
  host.dataset.ready = "true";
  const image = host.querySelector("img");
  const source = atob(image.src.slice(image.src.indexOf(",") + 1));
  const text = new TextDecoder().decode(Uint8Array.from(source, (c) => c.charCodeAt(0)));
  const svg = document.importNode(
    new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  const root = host.attachShadow({ mode: "open" });
  root.innerHTML = `<style>
    :host { display: block; max-width: 60rem; padding: 0.5rem; box-sizing: border-box;
            background: ${data.paper}; color: ${data.ink}; font: 14px/1.4 sans-serif; }
    svg { display: block; width: 100%; height: auto; }
    .row { display: flex; flex-wrap: wrap; gap: 0.4rem; align-items: center; }
    button, select { font: inherit; color: inherit; background: transparent; min-height: 2rem;
                     border: 1px solid currentColor; border-radius: 4px; padding: 0 0.7rem; }
    option { color: black; background: white; }
    input { flex: 1 1 10rem; min-height: 2rem; accent-color: ${data.accent}; }
    :focus-visible { outline: 3px solid ${data.accent}; outline-offset: 2px; }
    ul { margin: 0.3rem 0 0; padding: 0; list-style: none; columns: 20rem; }
  </style>
  <div class="stage"></div>
  <div class="row">
    <button class="back" title="Left arrow">Back</button>
    <button class="play" title="Space">Play</button>
    <button class="step" title="Right arrow">Step</button>
    <input type="range" min="0" step="any" aria-label="Time" title="Home and End jump">
    <label>Rank <select title="Up and down arrows"></select></label>
  </div>
  <output></output>
  <ul aria-label="What each rank does at this time"></ul>`;
  const find = (selector) => root.querySelector(selector);
  const [slider, choice, status] = [find("input"), find("select"), find("output")];
  host.setAttribute("role", "group");
  host.setAttribute("aria-label", "Player. " + data.title);
  host.tabIndex = 0;
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", data.alt);
  find(".stage").append(svg);
  slider.max = data.end;
  choice.append(new Option("all", ""), ...data.ranks.map((r) => new Option(String(r), String(r))));

  // Where time 0 and the end lie, from the outline of the axis.
  const outline = svg.querySelector("#stage path").getAttribute("d").match(/-?[\d.]+/g).map(Number);
  const xs = outline.filter((_, i) => i % 2 === 0), ys = outline.filter((_, i) => i % 2 === 1);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const make = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    svg.append(element);
    return element;
  };
  const veil = make("rect", { class: "veil", y: top, height: bottom - top, fill: data.paper,
                              "fill-opacity": 0.8 });
  const cursor = make("line", { class: "cursor", y1: top, y2: bottom, stroke: data.accent,
                                "stroke-width": 2 });

  const bars = data.bars.map((bar) => ({ ...bar, shape: svg.querySelector("#event-" + bar.id) }));
  const marks = [...svg.querySelectorAll('[id^="exposed-"]')];
  const moments = [0, data.end, ...bars.flatMap((bar) => [bar.start, bar.end])]
    .sort((a, b) => a - b)
    .filter((t, i, all) => !(all[i + 1] - t < data.end * 1e-6));
  const lines = new Map(data.ranks.map((rank) => [rank, document.createElement("li")]));
  find("ul").append(...lines.values());

  let time = data.end, playing = false, before = 0;
  const told = (t) =>
    data.clocked ? Number((t / data.scale).toPrecision(3)) + " " + data.unit
                 : "step " + Math.min(Math.floor(t + 1e-9), Math.ceil(data.end) - 1);

  function show() {
    const picked = choice.value === "" ? null : Number(choice.value);
    const x = left + (right - left) * (time / data.end);
    veil.setAttribute("x", x);
    veil.setAttribute("width", Math.max(0, right - x));
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    const doing = new Map(data.ranks.map((rank) => [rank, []]));
    for (const bar of bars) {
      const active = bar.start <= time && time < bar.end;
      if (active) doing.get(bar.rank).push(bar.words);
      bar.shape.classList.toggle("active", active);
      bar.shape.style.opacity = picked === null || picked === bar.rank ? 1 : 0.15;
      bar.shape.firstElementChild.style.strokeWidth = active ? 3 : "";
    }
    for (const mark of marks)
      mark.style.opacity = picked === null || picked === Number(mark.id.split("-")[1]) ? 1 : 0.15;
    for (const [rank, line] of lines) {
      const words = [...new Set(doing.get(rank))];
      const idle = time >= data.end ? "done" : "nothing";
      line.textContent = "rank " + rank + ": " + (words.join("; ") || idle);
    }
    const place = time >= data.end ? "the end" : told(time);
    const whole = data.clocked ? told(data.end) : Math.ceil(data.end) + " steps";
    status.textContent = place + ", of " + whole +
      (picked === null ? "" : "; " + lines.get(picked).textContent);
    find("ul").hidden = picked !== null;
    slider.value = host.dataset.time = time;
    slider.setAttribute("aria-valuetext", place);
    find(".play").textContent = playing ? "Pause" : "Play";
    status.setAttribute("aria-live", playing ? "off" : "polite");
  }

  function goTo(t) {
    time = Math.min(data.end, Math.max(0, t));
    show();
  }

  function step(direction) {
    playing = false;
    const gap = data.end * 1e-6;
    const next = direction > 0 ? moments.find((t) => t > time + gap)
                               : moments.findLast((t) => t < time - gap);
    goTo(next ?? (direction > 0 ? 0 : data.end));
  }

  // The whole takes some seconds; who asked for less motion sees it moment by moment.
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const seconds = Math.min(12, Math.max(4, moments.length / 5));
  function frame(now) {
    if (!playing || !host.isConnected) {
      playing = false;
      return;
    }
    const passed = (now - before) / 1000;
    if (!calm || passed > 0.7) {
      before = now;
      const next = calm ? moments.find((t) => t > time + data.end * 1e-6)
                        : time + (data.end * passed) / seconds;
      playing = next !== undefined && next < data.end;
      goTo(next ?? data.end);
    }
    requestAnimationFrame(frame);
  }

  function toggle() {
    playing = !playing;
    if (playing) {
      if (time >= data.end) time = 0;
      before = performance.now();
      requestAnimationFrame(frame);
    }
    show();
  }

  function pick(direction) {
    const options = choice.options.length;
    choice.selectedIndex = (choice.selectedIndex + direction + options) % options;
    show();
  }

  const keys = {
    " ": toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1),
    ArrowUp: () => pick(-1), ArrowDown: () => pick(1),
    Home: () => { playing = false; goTo(0); }, End: () => { playing = false; goTo(data.end); },
  };
  root.addEventListener("click", (event) => {
    if (event.target.matches(".back")) step(-1);
    if (event.target.matches(".step")) step(1);
    if (event.target.matches(".play")) toggle();
  });
  slider.addEventListener("input", () => { playing = false; goTo(Number(slider.value)); });
  choice.addEventListener("change", show);
  host.addEventListener("keydown", (event) => {
    const inside = event.composedPath()[0];
    const own = (inside.matches("button") && event.key === " ") || inside.matches("select");
    if (own || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    keys[event.key]();
    event.preventDefault();
    event.stopPropagation();
  });
  image.remove();
  show();
}
