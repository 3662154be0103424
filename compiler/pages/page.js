// Draws the edges between rows, which are measured, and lights the rows of one place together.
"use strict";
(() => {
  const EDGES = JSON.parse(document.getElementById("edges").textContent);
  const WIDTH = 400; // what a column wants before it is shown without being asked for
  const FIRST = ["adjoint", "assembly", "simplify", "plan", "llvm-opt", "optimize"]
    .map((name) => `stage-${name}`);
  const main = document.querySelector(".columns");
  const overlay = document.querySelector(".overlay");
  const status = document.getElementById("status");
  const byPlace = new Map();
  for (const row of document.querySelectorAll(".row[data-at]")) {
    const at = row.dataset.at;
    if (!byPlace.has(at)) byPlace.set(at, []);
    byPlace.get(at).push(row);
  }
  const columnOf = (row) => row.closest(".column");
  const shown = () => [...document.querySelectorAll(".column:not([hidden])")];

  // Edges.

  function path(svg, edge, d, head) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "path");
    made.setAttribute("class", `edge ${edge.kind}`);
    made.setAttribute("d", d + head);
    made.dataset.start = edge.start;
    made.dataset.end = edge.end;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = edge.title;
    made.append(title);
    svg.append(made);
    return made;
  }

  const arrow = (x, y) => ` M${x - 6},${y - 4} L${x},${y} L${x - 6},${y + 4}`;

  // Within a column: an arc in the gutter for each edge, further out where it would cross another.
  function drawWithin(column) {
    const svg = column.querySelector(".gutter");
    const own = EDGES.map((edge) => ({
      edge, from: document.getElementById(edge.start), to: document.getElementById(edge.end),
    })).filter(({ from, to }) => columnOf(from) === column && columnOf(to) === column);
    svg.replaceChildren();
    const ends = [];
    own.sort((a, b) => span(a) - span(b));
    for (const one of own) {
      const low = Math.min(one.from.offsetTop, one.to.offsetTop);
      const high = Math.max(one.from.offsetTop, one.to.offsetTop);
      one.lane = ends.findIndex((taken) => taken.every(([a, b]) => high < a || b < low));
      if (one.lane < 0) one.lane = ends.push([]) - 1;
      ends[one.lane].push([low, high]);
    }
    const step = Math.min(13, 90 / Math.max(1, ends.length));
    const width = own.length ? Math.round(30 + step * ends.length) : 0;
    svg.style.width = `${width}px`;
    column.style.setProperty("--gutter", `${width}px`);
    const top = svg.getBoundingClientRect().top;
    for (const { edge, from, to, lane } of own) {
      // Kills leave and arrive above the middle of a line, needs below; within one line there is a loop.
      const shift = (edge.kind === "kill" ? -3 : 3), apart = from === to ? 3.5 : 0;
      const a = middle(from) - top + shift - apart, b = middle(to) - top + shift + apart;
      const right = width - 4, out = right - (14 + step * (lane + 1)) * 4 / 3 + 6;
      path(svg, edge, `M${right},${a} C${out},${a} ${out},${b} ${right},${b}`, arrow(right, b));
    }
  }

  const span = ({ from, to }) => Math.abs(from.offsetTop - to.offsetTop);

  function middle(row) {
    const box = row.getBoundingClientRect();
    return box.top + box.height / 2;
  }

  // From column to column: where a row is scrolled away, the edge ends at the brim of its column.
  function drawAcross() {
    if (!overlay) return;
    overlay.replaceChildren();
    const origin = overlay.getBoundingClientRect();
    for (const edge of EDGES) {
      const from = document.getElementById(edge.start), to = document.getElementById(edge.end);
      const [one, other] = [columnOf(from), columnOf(to)];
      if (one === other || one.hidden || other.hidden) continue;
      const a = seen(from, one), b = seen(to, other);
      const x = Math.min(from.lastElementChild.getBoundingClientRect().right + 6,
        one.getBoundingClientRect().right - 6) - origin.left;
      const end = other.getBoundingClientRect().left - origin.left + 1;
      const bend = Math.max(24, (end - x) / 2.5);
      const [start, stop] = [a.y - origin.top, b.y - origin.top];
      const curve = `M${x},${start} C${x + bend},${start} ${end - bend},${stop} ${end},${stop}`;
      const made = path(overlay, edge, curve, arrow(end, stop));
      made.classList.toggle("away", a.away || b.away);
    }
    lightEdges();
  }

  function seen(row, column) {
    const box = column.querySelector(".scroll").getBoundingClientRect();
    const y = middle(row), kept = Math.min(Math.max(y, box.top + 4), box.bottom - 4);
    return { y: kept, away: kept !== y };
  }

  function draw() {
    shown().forEach(drawWithin);
    drawAcross();
  }

  let waiting = 0;
  function soon(work) {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(work);
  }

  // Light.

  let lit = "", pinned = "";

  function light(at) {
    if (at === lit) return;
    for (const row of byPlace.get(lit) ?? []) mark(row, false);
    lit = at;
    for (const row of byPlace.get(lit) ?? []) mark(row, true);
    shown().forEach(ticks);
    lightEdges();
    tell();
  }

  function mark(row, on) {
    row.classList.toggle("lit", on);
    row.classList.toggle("pinned", on && lit === pinned);
    row.setAttribute("aria-selected", String(on));
  }

  function lightEdges() {
    for (const one of document.querySelectorAll("path.edge")) {
      const ends = [one.dataset.start, one.dataset.end]
        .map((id) => document.getElementById(id).dataset.at);
      one.classList.toggle("lit", lit !== "" && ends.includes(lit));
    }
  }

  function ticks(column) {
    const box = column.querySelector(".scroll"), bar = column.querySelector(".ticks");
    const rows = (byPlace.get(lit) ?? []).filter((row) => columnOf(row) === column);
    bar.replaceChildren(...rows.map((row) => {
      const tick = document.createElement("i");
      tick.style.top = `${100 * row.offsetTop / Math.max(1, box.scrollHeight)}%`;
      return tick;
    }));
  }

  function tell() {
    if (!status || lit === "") return;
    const rows = byPlace.get(lit);
    const source = rows.find((row) => columnOf(row).id === "source") ?? rows[0];
    const counts = shown().filter((column) => column.id !== "source").map((column) => {
      const count = rows.filter((row) => columnOf(row) === column).length;
      return `${count} ${count === 1 ? "line" : "lines"} of ${column.dataset.name}`;
    });
    const note = source.querySelector(".note");
    const saved = note ? `; saves ${note.textContent}` : "";
    status.textContent = `line ${lit.split(":")[1]}: ${counts.join(", ")}${saved}`;
  }

  // Brings a lit row into view in each column but this one, unless there is one in view: the end of an
  // edge first, if `ends` matter.
  function reveal(here, ends = false) {
    const reached = new Set(ends ? EDGES.filter((edge) =>
      document.getElementById(edge.start).dataset.at === lit).map((edge) => edge.end) : []);
    for (const column of shown()) {
      if (column === here) continue;
      const all = (byPlace.get(lit) ?? []).filter((row) => columnOf(row) === column);
      const targets = [...reached].map((id) => document.getElementById(id))
        .filter((row) => columnOf(row) === column);
      const rows = targets.length ? targets : all;
      const box = column.querySelector(".scroll"), bounds = box.getBoundingClientRect();
      const inView = (row) => middle(row) > bounds.top && middle(row) < bounds.bottom;
      if (!rows.length || rows.some(inView)) continue;
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const target = middle(rows[0]) - bounds.top + box.scrollTop - bounds.height / 3;
      box.scrollTo({ top: target, behavior: still ? "auto" : "smooth" });
    }
  }

  const rowOf = (event) => event.target.closest?.(".row[data-at]");

  main.addEventListener("pointerover", (event) => {
    const row = rowOf(event);
    if (pinned !== "" || !row) return;
    light(row.dataset.at);
    if (columnOf(row).id === "source") reveal(columnOf(row));
  });
  main.addEventListener("pointerleave", () => light(pinned));
  main.addEventListener("focusin", (event) => {
    const row = rowOf(event);
    if (!row || pinned !== "") return;
    light(row.dataset.at);
    reveal(columnOf(row));
  });
  main.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (row) pin(row);
  });

  function pin(row) {
    pinned = pinned === row.dataset.at ? "" : row.dataset.at;
    light("");
    light(row.dataset.at);
    reveal(columnOf(row), pinned !== "");
    step(row, row);
  }

  main.addEventListener("keydown", (event) => {
    const row = rowOf(event);
    if (!row) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      const rows = [...columnOf(row).querySelectorAll(".row[data-at]")];
      step(row, rows[rows.indexOf(row) + by]);
    } else if (event.key === "Enter" || event.key === " ") {
      pin(row);
    } else if (event.key === "Escape") {
      pinned = "";
      light("");
      light(row.dataset.at);
    } else {
      return;
    }
    event.preventDefault();
  });

  // One row of each column is reached by Tab, the others by the arrow keys.
  function step(from, to) {
    if (!to) return;
    for (const row of columnOf(from).querySelectorAll('[tabindex="0"]')) row.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  for (const row of document.querySelectorAll(".row[data-at]")) row.tabIndex = -1;
  for (const column of document.querySelectorAll(".column")) {
    const first = column.querySelector(".row[data-at]");
    if (first) first.tabIndex = 0; else column.querySelector(".scroll").tabIndex = 0;
  }

  // Words of Python and names of ops in colour, where the browser can colour without changing the page.

  const words = (listed) => new RegExp(`\\b(?:${listed.replaceAll(" ", "|")})\\b`, "g");
  const KEYWORDS = "def class return for while if elif else in not and or is try except finally raise "
    + "with as pass break continue lambda yield match case None True False";
  const DIALECTS = "builtin|func|arith|math|memref|scf|array|ad|special|foreign|activation";
  const WORDS = {
    source: [["comment", /#.*/g], ["word", words(KEYWORDS)]],
    other: [["word", new RegExp(`\\b(?:${DIALECTS})\\.[\\w.]+`, "g")], ["name", /%[\w.-]+/g]],
  };

  function colour() {
    if (!globalThis.CSS?.highlights) return;
    const found = { comment: [], word: [], name: [] };
    for (const code of document.querySelectorAll("code")) {
      const text = code.firstChild;
      if (!text) continue;
      for (const [kind, pattern] of WORDS[columnOf(code).id] ?? WORDS.other) {
        for (const match of text.data.matchAll(pattern)) {
          const range = new StaticRange({
            startContainer: text, startOffset: match.index,
            endContainer: text, endOffset: match.index + match[0].length,
          });
          found[kind].push(range);
        }
      }
    }
    for (const kind of Object.keys(found)) {
      const highlight = new Highlight();
      found[kind].forEach((range) => highlight.add(range)); // too many for arguments
      CSS.highlights.set(kind, highlight);
    }
  }

  colour();

  // Which stages are shown: at first, as many as there is room for.

  const boxes = [...document.querySelectorAll("fieldset input")];
  const room = Math.max(1, Math.floor(innerWidth / WIDTH) - 1);
  const known = boxes.map((box) => box.value);
  const start = [...FIRST.filter((key) => known.includes(key)), ...known].slice(0, room);
  for (const box of boxes) {
    box.checked = start.includes(box.value);
    box.addEventListener("change", choose);
  }

  function choose() {
    for (const box of boxes) document.getElementById(box.value).hidden = !box.checked;
    draw();
    shown().forEach(ticks);
  }

  choose();
  for (const box of document.querySelectorAll(".scroll")) {
    box.addEventListener("scroll", () => soon(drawAcross), { passive: true });
  }
  new ResizeObserver(() => soon(draw)).observe(main);
  document.fonts?.ready.then(draw);
})();
