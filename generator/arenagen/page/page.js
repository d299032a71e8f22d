"use strict";

const all = (root, selector) => Array.from(root.querySelectorAll(selector));
const data = JSON.parse(document.getElementById("data").textContent);
const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/* Two decimals, and an exact half to the even one, as in the rest of the page. */
function rounded(value) {
  const eighths = value * 8;
  if (!Number.isInteger(eighths) || eighths % 2 === 0) return value.toFixed(2);
  const below = Math.floor(value * 100);
  return ((below + (below % 2)) / 100).toFixed(2);
}

function human(bytes) {
  let power = 0;
  while (bytes >= 1024 && power < units.length - 1) {
    bytes /= 1024;
    power += 1;
  }
  return `${power ? rounded(bytes) : bytes} ${units[power]}`;
}

/* Tabs: one config at a time, where there are several. */

function startTabs(list, panels) {
  const tabs = panels.map((panel) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `${panel.id}-tab`;
    tab.textContent = panel.dataset.name;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    list.append(tab);
    return tab;
  });

  function select(chosen) {
    tabs.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(place === chosen));
      tab.tabIndex = place === chosen ? 0 : -1;
      panels[place].hidden = place !== chosen;
    });
  }

  function follow() {
    const part = document.getElementById(location.hash.slice(1));
    const chosen = panels.findIndex((panel) => panel.contains(part));
    if (part !== null && chosen >= 0) {
      select(chosen);
      part.scrollIntoView();
    }
  }

  const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -tabs.length, End: tabs.length };
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => {
      select(place);
      history.replaceState(null, "", `#${panels[place].id}`);
    });
    tab.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      if (move === undefined) return;
      const count = tabs.length;
      const beyond = place + move;
      const next = Math.abs(move) === 1 ? (beyond + count) % count : Math.min(Math.max(beyond, 0), count - 1);
      event.preventDefault();
      tabs[next].focus();
      tabs[next].click();
    });
  });
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Config");
  list.hidden = false;
  select(0);
  follow();
  window.addEventListener("hashchange", follow);
}

/* The table of all buffers: sorted by a column, filtered by a text. */

function startTable(section) {
  const table = section.querySelector("table");
  const body = table.tBodies[0];
  const rows = all(body, "tr");

  function compare(key, one, other) {
    if (key === "place") return Number(one.dataset.place) - Number(other.dataset.place);
    if (key === "number") {
      const [left, right] = [BigInt(one.dataset.number), BigInt(other.dataset.number)];
      return left < right ? -1 : Number(left > right);
    }
    const text = (row) => row.querySelector(`[data-cell="${key}"]`).textContent.trim();
    const [left, right] = [text(one), text(other)];
    // Rows without a word come last in either direction.
    if (!left || !right) return Number(!left) - Number(!right);
    return left < right ? -1 : Number(left > right);
  }

  all(table, "[data-sort]").forEach((head) => {
    const key = head.dataset.sort;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.dataset.name = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const largest = key === "number";
      const now = head.getAttribute("aria-sort");
      const ascending = now === null ? !largest : now === "descending";
      all(table, "[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      rows.sort((one, other) => {
        const order = compare(key, one, other) * (ascending ? 1 : -1);
        return order || Number(one.dataset.place) - Number(other.dataset.place);
      });
      body.append(...rows);
    });
  });

  const filter = section.querySelector("[data-filter]");
  const live = section.querySelector("[data-live]");
  const count = section.querySelector("[data-count]");
  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word)) && (!live.checked || "memory" in row.dataset);
      row.hidden = !fits;
      shown += Number(fits);
    });
    count.textContent = `${shown} of ${rows.length} buffers`;
  }
  filter.addEventListener("input", show);
  live.addEventListener("change", show);
  show();
  section.querySelector(".tools").hidden = false;
}

/* The size chart: the sizes at the token count under the slider. */

function startChart(figure, curve) {
  const slider = figure.querySelector("input");
  const output = figure.querySelector("output");
  const cursor = figure.querySelector(".cursor");
  const cells = all(figure, "[data-size]");
  const at = figure.querySelector("[data-at]");
  const series = [curve.total, ...Object.values(curve.buffers)];
  const [first, last] = [curve.tokens[0], curve.tokens[curve.tokens.length - 1]];
  const symbol = at.textContent.split(" = ")[0];

  function show() {
    const place = Number(slider.value);
    const tokens = curve.tokens[place];
    const x = `${(100 * Math.log(tokens / first)) / Math.log(last / first)}%`;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cells.forEach((cell, line) => {
      cell.textContent = human(series[line][place]);
    });
    at.textContent = `${symbol} = ${tokens.toLocaleString("en")}`;
    const text = `${at.textContent}: ${human(curve.total[place])}`;
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }

  const svg = figure.querySelector("svg");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const wanted = first * (last / first) ** ((event.clientX - box.left) / box.width);
    const nearer = (best, tokens, place) =>
      Math.abs(Math.log(tokens / wanted)) < Math.abs(Math.log(curve.tokens[best] / wanted)) ? place : best;
    slider.value = String(curve.tokens.reduce(nearer, 0));
    show();
  });
  slider.addEventListener("input", show);
  figure.querySelector(".slider").hidden = false;
  show();
}

/* What is folded away is printed too. */

function openForPrint() {
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = all(document, "details:not([open])");
    folded.forEach((each) => { each.open = true; });
  });
  window.addEventListener("afterprint", () => {
    folded.forEach((each) => { each.open = false; });
  });
}

const panels = all(document, ".config");
all(document, "[data-tabs]").forEach((list) => startTabs(list, panels));
panels.forEach((panel, place) => {
  all(panel, "[data-curve]").forEach((figure) => startChart(figure, data[place].curve));
  all(panel, ".all").forEach(startTable);
});
openForPrint();
