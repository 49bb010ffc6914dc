// Asks for /status.json every two seconds and draws it. Texts are set as text, never as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 640, HEIGHT = 200, LEFT = 12, RIGHT = 12, TOP = 22, BOTTOM = 26;

function make(tag, facts = {}, ...children) {
  const node = ["svg", "rect", "line", "path", "text", "title"].includes(tag)
    ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function duration(seconds) {
  if (seconds === null) return "–";
  if (seconds < 1) return Number((seconds * 1000).toPrecision(seconds < 0.01 ? 2 : 3)) + " ms";
  if (seconds < 120) return seconds.toPrecision(3) + " s";
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? minutes + " min" : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

const megabytes = (bytes) => (bytes / 2 ** 20).toFixed(0) + " MB";

// How many requests took how long, on a scale of doublings, with marks at the percentiles.
function histogram(model, bounds) {
  const counts = model.latency, seen = counts.map((count, at) => (count ? at : -1)).filter((at) => at >= 0);
  if (!seen.length) return make("p", {class: "soft"}, "No requests yet.");
  const first = Math.max(0, Math.min(...seen) - 2), last = Math.min(counts.length - 1, Math.max(...seen) + 2);
  const step = (WIDTH - LEFT - RIGHT) / (last - first + 1), high = Math.max(...counts), floor = HEIGHT - BOTTOM;
  const picture = make("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `latency of ${model.requests} requests, half below ${duration(model.percentiles["50"])}`});
  for (let at = first; at <= last; at++) {
    const x = LEFT + (at - first) * step, tall = counts[at] ? Math.max(1, counts[at] / high * (floor - TOP)) : 0;
    if (tall) picture.append(make("rect", {x: x + 1, y: floor - tall, width: Math.max(1, step - 2), height: tall},
      make("title", {}, `${counts[at]} up to ${duration(bounds[Math.min(at, bounds.length - 1)])}`)));
    if (at % 2 === 0 && at < bounds.length && x + step < WIDTH - 24 && (at - first) * step >= 20)
      if (last - first < 20 || at % 4 === 0)
        picture.append(make("text", {x: x + step, y: HEIGHT - 8, "text-anchor": "middle"}, duration(bounds[at])));
  }
  picture.append(make("path", {d: `M${LEFT} ${floor}H${WIDTH - RIGHT}`}));
  let free = -Infinity;
  for (const percent of ["50", "99"]) {
    const at = bounds.indexOf(model.percentiles[percent]);
    if (at < 0) continue;
    const x = LEFT + (at + 1 - first) * step;
    picture.append(make("line", {x1: x, x2: x, y1: TOP - 4, y2: floor}));
    const place = Math.max(free, Math.min(x, WIDTH - 28));
    picture.append(make("text", {x: place, y: 14, "text-anchor": "middle", class: "mark"}, percent + " %"));
    free = place + 40;
  }
  return picture;
}

function facts(model) {
  const list = make("dl"), add = (name, value, kind) =>
    list.append(make("dt", {}, name), make("dd", kind ? {class: kind} : {}, value));
  add("requests", model.requests.toLocaleString("en"));
  for (const [code, count] of Object.entries(model.statuses))
    if (code !== "200") add("answered " + code, count.toLocaleString("en"), code >= "500" ? "bad" : "");
  add("half below", duration(model.percentiles["50"]));
  add("90 % below", duration(model.percentiles["90"]));
  add("99 % below", duration(model.percentiles["99"]));
  add("queue", `${model.queue[0]} of ${model.queue[1]}`, model.queue[0] * 2 > model.queue[1] ? "bad" : "");
  add("batch", `${model.requests ? model.mean_batch.toFixed(1) : "–"} of ${model.batch}` + (model.delay ? `, held back ${model.delay} ms at most` : ""));
  add("workers", `${model.workers[0]} of ${model.workers[1]}, ${megabytes(model.memory)}`,
    model.workers[0] < model.workers[1] ? "bad" : "");
  if (model.restarts) add("restarts", model.restarts);
  return list;
}

function card(model, bounds) {
  const ready = model.workers[0] > 0;
  const title = make("div", {class: "title"}, make("h2", {}, model.name),
    make("span", {class: "tag"}, "version " + model.version));
  if (model.default) title.append(make("span", {class: "tag"}, "default"));
  if (model.weight !== null) title.append(make("span", {class: "tag"}, "weight " + model.weight));
  title.append(make("span", {class: "tag"}, model.platform.replace("cresset_", "")),
    make("span", {class: ready ? "good" : "bad"}, ready ? "ready" : "not ready"));
  return make("section", {}, title, make("div", {class: "inside"}, facts(model), histogram(model, bounds)));
}

async function refresh() {
  const line = document.getElementById("facts");
  try {
    const answer = await fetch("/status.json", {cache: "no-store"});
    if (!answer.ok) throw new Error("answered " + answer.status);
    const status = await answer.json();
    line.textContent = `version ${status.version}, up ${duration(status.uptime)}, front ${megabytes(status.memory)}`;
    line.className = "";
    const cards = status.models.map((model) => card(model, status.bounds));
    document.getElementById("models").replaceChildren(
      ...(cards.length ? cards : [make("p", {}, "No model is loaded.")]));
  } catch (error) {
    line.textContent = "the server does not answer: " + error.message;
    line.className = "bad";
  }
  setTimeout(refresh, 2000);
}

refresh();
