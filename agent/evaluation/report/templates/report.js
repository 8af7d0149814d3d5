// The page is whole without this. It filters and orders the turns, goes from one to the next, and shows passages.
"use strict";
const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const data = JSON.parse(find("#data").textContent);
const list = find("#list");
const turns = all(".turn");
const SAME = 1e-9;

const chosen = (name) => Number(find(`[name="${name}"]:checked`)?.value ?? 0);
const field = (id) => find(`#${id}`)?.value ?? "";
const valuesOf = (turn) => data.values[turn.id][chosen("measure")] ?? [];
function differenceOf(turn) {
  const values = valuesOf(turn);
  const [below, above] = [values[0], values[chosen("other")]];
  return below == null || above == null ? null : above - below;
}

// Values of the chosen measure, written as everywhere in the page
function write(value) {
  if (value == null) return "–";
  if (Math.abs(value) > 1) return value.toFixed(1).replace("-", "−");
  return value === 1 ? "1.00" : value.toFixed(3).replace("-", "−").replace(/^(−?)0/, "$1");
}
function writeValues() {
  for (const turn of turns) {
    const values = valuesOf(turn);
    all("summary > .score > :last-child", turn).forEach((cell, run) => (cell.textContent = write(values[run])));
  }
}

// Filters and order
const texts = new Map();
function textOf(turn) {
  if (!texts.has(turn)) texts.set(turn, turn.textContent.toLowerCase());
  return texts.get(turn);
}
function hasOutcome(turn, outcome) {
  const by = differenceOf(turn);
  if (by === null) return false;
  return outcome === "win" ? by > SAME : outcome === "loss" ? by < -SAME : Math.abs(by) <= SAME;
}
function fits(turn, words) {
  const [topic, kind, outcome] = ["topic", "kind", "outcome"].map(field);
  return (!topic || turn.dataset.topic === topic)
    && (!kind || turn.dataset.kinds.split("|").includes(kind))
    && (!outcome || hasOutcome(turn, outcome))
    && words.every((word) => textOf(turn).includes(word));
}
const ORDERS = {
  gain: (turn) => -(differenceOf(turn) ?? -Infinity),
  fall: (turn) => differenceOf(turn) ?? Infinity,
  apart: (turn) => -Math.abs(differenceOf(turn) ?? 0),
  low: (turn) => Math.min(...valuesOf(turn).map((value) => value ?? Infinity)),
};
function apply() {
  const words = field("words").toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ORDERS[field("order")] ?? (() => 0);
  const ordered = turns.map((turn) => [rank(turn), turn]).sort((one, other) => one[0] - other[0] || 0);
  list.append(...ordered.map(([, turn]) => turn));
  let shown = 0;
  for (const turn of turns) shown += !(turn.hidden = !fits(turn, words));
  find("#count").textContent = shown === turns.length ? `${shown} turns` : `${shown} of ${turns.length} turns`;
  find("#none").hidden = shown > 0;
}
function clear() {
  find("#filters").reset();
  apply();
}
find("#words").addEventListener("input", apply);
find("#filters").addEventListener("change", apply);
find("#filters").addEventListener("submit", (event) => event.preventDefault());
find("#clear").addEventListener("click", clear);
all('[name="measure"], [name="other"]').forEach((choice) => choice.addEventListener("change", () => {
  writeValues();
  apply();
}));
all("[data-outcome]").forEach((link) => link.addEventListener("click", (event) => {
  event.preventDefault();
  find(`#measure-${link.dataset.measure}`).checked = true;
  find(`#other-${link.dataset.other}`).checked = true;
  writeValues();
  find("#outcome").value = link.dataset.outcome;
  find("#order").value = link.dataset.outcome === "win" ? "gain" : "fall";
  apply();
  find("#turns").scrollIntoView();
}));

// Going to a turn
function open(turn) {
  if (turn.hidden) clear();
  turn.open = true;
  turn.scrollIntoView();
  find("summary", turn).focus({ preventScroll: true });
}
function follow() {
  const turn = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (turn?.classList.contains("turn")) open(turn);
}
addEventListener("hashchange", follow);
addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.getAttribute("href") === location.hash) follow();
});
addEventListener("keydown", (event) => {
  if (event.target.matches("input[type=search], select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    find("#words").focus();
  }
  if (event.key !== "j" && event.key !== "k") return;
  const visible = all(".turn:not([hidden])");
  const here = visible.indexOf(document.activeElement.closest(".turn"));
  const next = visible[event.key === "j" ? here + 1 : Math.max(here, 1) - 1];
  if (next) find("summary", next).focus();
});

// Bars: the nearest one is pointed at, and the arrow keys go from one to the next
for (const chart of all(".bars")) {
  const bars = all("a", chart);
  const said = find(".pointed", chart.parentElement);
  const nearest = (x) => bars.reduce((best, bar) => {
    const box = bar.getBoundingClientRect();
    const distance = Math.abs(box.x + box.width / 2 - x);
    return distance < best[0] ? [distance, bar] : best;
  }, [Infinity, null])[1];
  const point = (bar) => {
    bars.forEach((each) => each.classList.toggle("pointed", each === bar));
    const turn = bar && document.getElementById(bar.getAttribute("href").slice(1));
    said.textContent = turn ? `${bar.getAttribute("aria-label")}  ${find(".asked", turn).textContent}` : "\u00a0";
  };
  chart.addEventListener("pointermove", (event) => point(nearest(event.clientX)));
  chart.addEventListener("pointerleave", () => point(null));
  chart.addEventListener("focusin", (event) => point(event.target.closest("a")));
  chart.addEventListener("click", (event) => {
    if (!event.target.closest("a")) location.hash = nearest(event.clientX).getAttribute("href");
  });
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step && bars[bars.indexOf(event.target.closest("a")) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
}

// Passages
const SNIPPET = 160;
function fill(turn) {
  for (const button of all("td > button[data-p], th > button[data-p]", turn)) {
    const [, title, text] = data.passages[button.dataset.p];
    if (text && !find(".snippet", button)) {
      const snippet = document.createElement("span");
      snippet.className = "snippet";
      snippet.textContent = (title ? `${title}: ${text}` : text).slice(0, SNIPPET);
      button.prepend(snippet);
    }
  }
}
turns.forEach((turn) => turn.addEventListener("toggle", () => turn.open && fill(turn)));
function markSentences(text, sentences) {
  const parts = [text];
  for (const sentence of sentences) {
    const place = parts.findIndex((part) => typeof part === "string" && part.includes(sentence));
    if (place < 0) continue;
    const [before, after] = parts[place].split(sentence, 2);
    const mark = document.createElement("mark");
    mark.textContent = sentence;
    parts.splice(place, 1, before, mark, after);
  }
  return parts;
}
function show(button) {
  const number = button.dataset.p;
  const [id, title, text] = data.passages[number];
  const citing = all(".sentence[data-cites]", button.closest(".turn")).filter((each) => each.dataset.cites.split(" ").includes(number));
  const sentences = [...new Set(citing.map((each) => each.textContent.split(/\s+/).join(" ").trim()))];
  find("#passage-title").textContent = title || id;
  find("#passage-note").textContent = [title && id, sentences.length && "Marked: sentences of the answers"].filter(Boolean).join(". ");
  find("#passage-text").replaceChildren(...(text ? markSentences(text, sentences) : ["No text of this passage was given."]));
  find("#passage").showModal();
}
addEventListener("click", (event) => {
  const button = event.target.closest("button[data-p]");
  if (button) show(button);
  else if (event.target === find("#passage")) find("#passage").close();
});
for (const kind of ["pointerover", "focusin"]) list.addEventListener(kind, (event) => {
  const number = event.target.closest?.("[data-p]")?.dataset.p;
  all(".same").forEach((cell) => cell.classList.remove("same"));
  if (number === undefined) return;
  const same = all(`td > [data-p="${number}"], th > [data-p="${number}"]`, event.target.closest(".turn"));
  if (same.length > 1) same.forEach((button) => button.parentElement.classList.add("same"));
});
follow();
