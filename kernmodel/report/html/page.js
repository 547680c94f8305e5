"use strict";
// Draws the charts of the page from the data beside them, and moves what follows a slider. No library: docs/report.md.
(() => {
const SPACE = "http://www.w3.org/2000/svg";
const DASH = "7 4", NEAR = 14, FONT = 12;
const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const SHAPES = [
  (r) => `M${-r},0a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0z`,
  (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0,${-1.3 * r}L${1.2 * r},${r}H${-1.2 * r}z`,
  (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0z`,
];

const CROSS = (r) => `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}`;

function make(name, attributes, parent, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function tag(name, attributes, parent, text) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

const colour = (number) => `var(--c${number % 8})`;
const shade = (one) => (one.share === null ? colour(one.colour) : `color-mix(in oklab, var(--hot) ${Math.round(100 * one.share)}%, var(--cold))`);
const RING = 7;
const radius = (one) => (one.share === null ? 5 : Math.max(3, 15 * Math.sqrt(one.share)));  // the area is the share

// ---- numbers and scales

function written(value, unit) {
  if (value === 0) return unit ? `0 ${unit}` : "0";
  const size = Math.abs(value) * (1 + 1e-12);
  if (!unit) return size >= 1e6 || size < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
  const [factor, prefix] = PREFIXES.find(([least]) => size >= least) || PREFIXES[PREFIXES.length - 1];
  return `${Number((value / factor).toPrecision(3))} ${prefix}${unit}`;
}

class Scale {
  // maps [low, high] (in decades where logarithmic) to pixels
  constructor(log, low, high, from, to) { Object.assign(this, { log, low, high, from, to }); }
  inner(value) { return this.log ? Math.log10(value) : value; }
  outer(inner) { return this.log ? 10 ** inner : inner; }
  at(value) { return this.place(this.inner(value)); }
  place(inner) { return this.from + ((inner - this.low) / (this.high - this.low)) * (this.to - this.from); }
  back(pixel) { return this.low + ((pixel - this.from) / (this.to - this.from)) * (this.high - this.low); }
  ticks(room) {
    const most = Math.max(2, Math.floor(Math.abs(this.to - this.from) / room));
    const found = this.log ? this.decades(most) : this.steps(most);
    const within = found.filter((value) => { const at = this.inner(value); return at >= this.low - 1e-9 && at <= this.high + 1e-9; });
    return within.length >= 2 || !this.log ? within : this.steps(most, true);
  }
  decades(most) {
    for (const factors of [[1, 2, 5], [1, 3], [1]]) {
      const found = [];
      for (let power = Math.floor(this.low); power <= Math.ceil(this.high); power++) for (const factor of factors) found.push(factor * 10 ** power);
      if (found.filter((v) => Math.log10(v) >= this.low && Math.log10(v) <= this.high).length <= most) return found;
    }
    const step = Math.ceil((this.high - this.low) / most);
    return Array.from({ length: most + 2 }, (_, k) => 10 ** (Math.ceil(this.low / step) * step + k * step));
  }
  steps(most, ofLog) {
    const low = ofLog ? 10 ** this.low : this.low, high = ofLog ? 10 ** this.high : this.high;
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
    const first = Math.ceil(low / step - 1e-9), found = [];
    for (let k = first; k * step <= high + step * 1e-9; k++) found.push(k * step);
    return found;
  }
}

// ---- labels that leave each other room: turned rectangles, parted by one of their sides' directions

function corners(x, y, width, height, angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return [[0, -0.85 * height], [width, -0.85 * height], [width, 0.25 * height], [0, 0.25 * height]].map(([u, v]) => [x + u * c - v * s, y + u * s + v * c]);
}

function apart(one, other) {
  for (const box of [one, other]) for (const [a, b] of [[0, 1], [1, 2]]) {
    const direction = [box[b][0] - box[a][0], box[b][1] - box[a][1]];
    const spans = [one, other].map((points) => { const along = points.map(([x, y]) => x * direction[0] + y * direction[1]); return [Math.min(...along), Math.max(...along)]; });
    if (spans[0][1] < spans[1][0] || spans[1][1] < spans[0][0]) return true;
  }
  return false;
}

function thin([a, b], [c, d]) {
  const length = Math.hypot(c - a, d - b) || 1, [u, v] = [(d - b) / length, (a - c) / length];
  return [[a + u, b + v], [c + u, d + v], [c - u, d - v], [a - u, b - v]];
}

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text) { ruler.font = `${FONT}px system-ui, "DejaVu Sans", sans-serif`; return ruler.measureText(text).width + 4; }

// ---- what every chart has: its elements, the tip, keys

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector(":scope > script").textContent);
    this.plot = figure.querySelector(".plot");
    this.title = figure.querySelector("figcaption").textContent;
    this.tip = tag("div", { class: "tip", role: "status" }, this.plot);
    this.step = this.data.place || 0;
    this.stop = -1;
    new ResizeObserver(() => { if (Math.abs(this.plot.clientWidth - (this.width || 0)) > 1) this.draw(); }).observe(this.plot);
  }
  sheet(height) {
    const focused = this.svg && this.svg === document.activeElement;
    if (this.svg) this.svg.remove();
    this.svg = make("svg", { viewBox: `0 0 ${this.width} ${height}`, role: "img", tabindex: 0, "aria-label": `${this.title}. ${this.plot.dataset.about} Arrow keys read its points.` });
    this.plot.insertBefore(this.svg, this.tip);
    this.height = height;
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("pointermove", (event) => this.hover(event));
    this.svg.addEventListener("pointerleave", () => this.quiet());
    this.svg.addEventListener("blur", () => this.quiet());
    if (focused) this.svg.focus();
    return this.svg;
  }
  spot(event) {
    const box = this.svg.getBoundingClientRect();
    return [((event.clientX - box.left) * this.width) / box.width, ((event.clientY - box.top) * this.height) / box.height];
  }
  hover(event) {
    const [x, y] = this.spot(event);
    let best = null, least = NEAR;
    for (const stop of this.stops) { const far = stop.far(x, y); if (far < least) [best, least] = [stop, far]; }
    if (best) this.say(best, x, y); else this.quiet();
  }
  say(stop, x, y) {
    this.quiet();
    this.tip.textContent = stop.tip;
    const wide = this.tip.offsetWidth, factor = this.plot.clientWidth / this.width;
    this.tip.style.left = `${Math.max(0, Math.min(x * factor + 12, this.plot.clientWidth - wide))}px`;
    this.tip.style.top = `${Math.max(0, y * factor - this.tip.offsetHeight - 10)}px`;
    this.ring = stop.ring(this.svg);
  }
  quiet() { this.tip.textContent = ""; if (this.ring) this.ring.remove(); this.ring = null; }
  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && this.stops.length) {
      this.stop = (this.stop + step + this.stops.length) % this.stops.length;
      const stop = this.stops[this.stop];
      this.say(stop, stop.x, stop.y);
    } else if (event.key === "Escape") this.quiet();
    else if (!this.zoomKey(event.key)) return;
    event.preventDefault();
  }
  zoomKey() { return false; }
  ticks(scale, room, across, sheet, box, unit) {
    for (const value of scale.ticks(room)) {
      const at = scale.at(value), group = make("g", { class: "tick" }, sheet);
      if (across) {
        make("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom }, group);
        make("text", { x: at, y: box.bottom + 16, "text-anchor": "middle" }, group, written(value, unit));
      } else {
        make("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }, group);
        make("text", { x: box.left - 6, y: at + 4, "text-anchor": "end" }, group, written(value, unit));
      }
    }
  }
  follow(step) { this.step = step; this.draw(); }
}

// ---- lines, areas and marks

class Lines extends Chart {
  constructor(figure) {
    super(figure);
    this.hidden = new Set();
    this.whole = this.view = this.extent();
    this.controls();
  }
  extent() {
    const { x, y, series, limits } = this.data;
    if (limits) {
      const inner = (axis, ends) => ends.map((v) => (axis.log ? Math.log10(v) : v));
      return { x: inner(x, limits.slice(0, 2)), y: inner(y, limits.slice(2)) };
    }
    const all = series.flatMap((one) => one.points);
    const range = (values, axis) => {
      const inner = values.filter((v) => v !== null && (!axis.log || v > 0)).map((v) => (axis.log ? Math.log10(v) : v));
      let low = Math.min(...inner), high = Math.max(...inner);
      if (!axis.log) low = Math.min(0, low);
      if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
      const pad = 0.04 * (high - low);
      return [axis.log ? low - pad : low, high + pad];
    };
    return { x: range(all.map((p) => p[0]), x), y: range(all.flatMap((p) => p.slice(1)), y) };
  }
  controls() {
    const names = [...new Set(this.data.series.map((one) => one.name))];
    const legend = tag("div", { class: "legend", role: "group", "aria-label": `Shown in ${this.title}` });
    for (const name of names) {
      const label = tag("label", {}, legend), one = this.data.series.find((each) => each.name === name);
      const box = tag("input", { type: "checkbox", checked: "" }, label);
      const key = make("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, label);
      this.sample(key, one);
      label.append(name);
      box.addEventListener("change", () => { if (box.checked) this.hidden.delete(name); else this.hidden.add(name); this.draw(); });
    }
    this.plot.after(legend);
    const controls = tag("div", { class: "controls" });
    for (const [text, about, key] of [["+", "Zoom in", "+"], ["−", "Zoom out", "-"], ["Whole chart", "Show the whole chart", "0"]])
      tag("button", { type: "button", "aria-label": `${about}: ${this.title}` }, controls, text).addEventListener("click", () => this.zoomKey(key));
    legend.after(controls);
  }
  sample(key, one) {
    if (one.shape === "area") make("rect", { x: 1, y: 1, width: 20, height: 10, fill: colour(one.colour), opacity: 0.75 }, key);
    else if (one.shape === "marks") make("path", { d: SHAPES[one.colour % 4](4), transform: "translate(11 6)", fill: shade(one) }, key);
    else if (one.shape === "crosses") make("path", { d: CROSS(4), transform: "translate(11 6)", stroke: colour(one.colour), "stroke-width": 2 }, key);
    else make("line", { x1: 0, x2: 22, y1: 6, y2: 6, stroke: colour(one.colour), "stroke-width": 2.5, "stroke-dasharray": one.dashed ? DASH : "none" }, key);
  }
  draw() {
    this.width = Math.max(240, this.plot.clientWidth);
    const height = Math.round(Math.max(260, Math.min(430, 0.58 * this.width)));
    const sheet = this.sheet(height), { x, y } = this.data;
    const named = y.label && !y.unit, top = named ? 28 : 12;  // ticks with a unit say what they are
    const vertical = new Scale(y.log, ...this.view.y, height - 44, top);
    const wide = Math.max(...vertical.ticks(34).map((v) => widthOf(written(v, y.unit))));
    const box = this.box = { left: wide + 12, right: this.width - 10, top, bottom: height - 44 };
    if (named) make("text", { class: "axis", x: 2, y: 13 }, sheet, y.label);
    this.down = vertical;
    this.across = new Scale(x.log, ...this.view.x, box.left, box.right);
    this.ticks(this.across, 12 + Math.max(34, ...this.across.ticks(64).map((v) => widthOf(written(v, x.unit)))), true, sheet, box, x.unit);
    this.ticks(vertical, 34, false, sheet, box, y.unit);
    make("text", { class: "axis", x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" }, sheet, x.label);
    const clip = `clip${Lines.count = (Lines.count || 0) + 1}`;
    make("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }, make("clipPath", { id: clip }, sheet));
    const inside = make("g", { "clip-path": `url(#${clip})` }, sheet);
    make("rect", { class: "frame", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }, sheet);
    this.stops = []; this.labels = []; this.drawn = [];
    const shown = this.data.series.filter((one) => !this.hidden.has(one.name));
    for (const shape of ["area", "line", "arrow", "marks", "crosses"]) for (const one of shown) if (one.shape === shape) this[shape](one, inside);
    if (this.data.follows && this.data.places.length) {
      const at = this.across.at(this.data.places[this.step]);
      make("line", { class: "place", x1: at, x2: at, y1: box.top, y2: box.bottom }, inside);
    }
    this.write(shown, sheet);
    this.drag(sheet, box);
  }
  pixels(one, index = 1) {
    return one.points.map((point) => (point[index] === null || (this.data.y.log && point[index] <= 0) ? null : [this.across.at(point[0]), this.down.at(point[index])]));
  }
  stopAt(one, number, [x, y]) {
    const tip = one.tips[Math.min(number, one.tips.length - 1)] || one.name, { box } = this;
    if (x < box.left - 1 || x > box.right + 1 || y < box.top - 1 || y > box.bottom + 1) return;
    const ring = (sheet) => make("circle", { class: "near", cx: x, cy: y, r: RING }, sheet);
    // within its ring a point is nearer than a line that runs through it
    this.stops.push({ x, y, tip, ring, far: (a, b) => Math.hypot(a - x, b - y) - RING });
  }
  area(one, parent) {
    const low = this.pixels(one, 1).map((at, k) => at || [this.across.at(one.points[k][0]), this.box.bottom]);
    const high = this.pixels(one, 2).map((at, k) => at || low[k]);
    const path = [...high, ...[...low].reverse()].map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join("L");
    make("path", { d: `M${path}z`, fill: colour(one.colour), opacity: 0.75 }, parent);
    high.forEach((at, number) => { if (one.points[number][2] > one.points[number][1]) this.stopAt(one, number, at); });
  }
  line(one, parent) {
    const points = this.pixels(one).filter(Boolean);
    if (!points.length) return;
    points.slice(1).forEach((end, k) => this.drawn.push(thin(points[k], end)));
    make("path", { d: `M${points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join("L")}`, fill: "none", stroke: colour(one.colour), "stroke-width": 2.2, "stroke-dasharray": one.dashed ? DASH : "none" }, parent);
    if (one.tips.length > 1) this.pixels(one).forEach((at, number) => at && this.stopAt(one, number, at));
    else this.stretch(one, points);
  }
  stretch(one, points) {
    // a line of one tip: near anywhere along it
    const seen = this.visible(points);
    if (!seen) return;
    const [x, y] = [(seen[0][0] + seen[1][0]) / 2, (seen[0][1] + seen[1][1]) / 2];
    const far = (a, b) => Math.min(...points.slice(1).map((end, k) => distance(a, b, points[k], end)));
    const ring = (sheet) => make("path", { class: "near", d: `M${seen[0]}L${seen[1]}`, "stroke-width": 4 }, sheet);
    this.stops.push({ x, y, tip: one.tips[0] || one.name, far, ring });
  }
  arrow(one, parent) {
    const points = this.pixels(one);
    if (points.some((at) => !at)) return;
    const [[a, b], [c, d]] = points, turn = (Math.atan2(d - b, c - a) * 180) / Math.PI;
    this.drawn.push(thin(...points));
    make("path", { class: "arrow", d: `M${a.toFixed(1)},${b.toFixed(1)}L${c.toFixed(1)},${d.toFixed(1)}`, fill: "none", "stroke-width": 1.6 }, parent);
    make("path", { class: "arrowhead", d: "M-6,0L-17,5V-5z", transform: `translate(${c.toFixed(1)} ${d.toFixed(1)}) rotate(${turn.toFixed(2)})` }, parent);
    this.stretch(one, points);
  }
  marks(one, parent) {
    const size = radius(one);
    this.spots(one, size + 1, (at) => make("path", { d: SHAPES[one.colour % 4](size), transform: `translate(${at})`, fill: shade(one), stroke: "var(--paper)" }, parent));
  }
  crosses(one, parent) {
    this.spots(one, 6, (at) => make("path", { d: CROSS(6), transform: `translate(${at})`, stroke: colour(one.colour), "stroke-width": 2.4 }, parent));
  }
  spots(one, half, draw) {
    // each point drawn, kept clear of labels, and a stop for pointer and keys
    this.pixels(one).forEach((at, number) => {
      if (!at) return;
      draw(at);
      this.labels.push([[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([u, v]) => [at[0] + u * half, at[1] + v * half]));
      this.stopAt(one, number, at);
    });
  }
  visible(points) {
    // the first stretch of a line inside the box, cut at its sides
    const { left, right, top, bottom } = this.box;
    for (let k = 1; k < points.length; k++) {
      let [low, high] = [0, 1];
      const [[a, b], [c, d]] = [points[k - 1], points[k]];
      for (const [start, change, least, most] of [[a, c - a, left, right], [b, d - b, top, bottom]]) {
        if (Math.abs(change) < 1e-9) { if (start < least || start > most) high = -1; continue; }
        const ends = [(least - start) / change, (most - start) / change].sort((u, v) => u - v);
        [low, high] = [Math.max(low, ends[0]), Math.min(high, ends[1])];
      }
      if (high - low > 1e-6) return [low, high].map((t) => [a + t * (c - a), b + t * (d - b)]);
    }
    return null;
  }
  write(shown, sheet) {
    for (const one of shown) {
      if (!one.label) continue;
      const point = one.shape === "marks" || one.shape === "crosses";
      const places = point ? this.beside(one) : this.along(one);
      const wide = widthOf(one.label), { box } = this;
      const free = places(wide).map(([x, y, angle]) => ({ x, y, angle, turned: corners(x, y, wide, FONT, angle) })).filter(({ turned }) =>
        turned.every(([a, b]) => a >= box.left && a <= box.right && b >= box.top && b <= box.bottom) && this.labels.every((other) => apart(turned, other)));
      const clear = free.find(({ turned }) => this.drawn.every((line) => apart(turned, line))) || (point ? free[0] : null);
      if (!clear) continue;
      this.labels.push(clear.turned);
      const turn = ((clear.angle * 180) / Math.PI).toFixed(2);
      make("text", { class: "label", transform: `translate(${clear.x.toFixed(1)} ${clear.y.toFixed(1)}) rotate(${turn})`, style: `fill:${colour(one.colour)}` }, sheet, one.label);
    }
  }
  along(one) {
    // just above the visible stretch of the line, turned as it is: slanted ones from the left, level ones from the right
    const seen = this.visible(this.pixels(one).filter(Boolean));
    return (wide) => {
      if (!seen) return [];
      const [[a, b], [c, d]] = seen, angle = Math.atan2(d - b, c - a), length = Math.hypot(c - a, d - b) - wide;
      if (length < 0) return [];
      const level = Math.abs(angle) < 0.01, found = [];
      for (let k = 0; k <= 24; k++) for (const rise of [-5, FONT + 4]) {
        const t = 4 + (length - 8) * (level ? 1 - k / 24 : k / 24);
        found.push([a + t * Math.cos(angle) - rise * Math.sin(angle), b + t * Math.sin(angle) + rise * Math.cos(angle), angle]);
      }
      return found;
    };
  }
  beside(one) {
    const [x, y] = this.pixels(one)[0] || [-1, -1];
    const out = Math.max(0, radius(one) - 5);
    return (wide) => [[9, 4], [-9 - wide, 4], [4, -12], [4, 22], [-wide - 4, -12], [-wide - 4, 22], [14, 30], [-wide - 14, 30]].map(([u, v]) => [x + u + Math.sign(u) * out, y + v + Math.sign(v - 4) * out, 0]);
  }
  drag(sheet, box) {
    // a rectangle drawn with the mouse is what is shown then; fingers scroll the page
    let from = null, band = null;
    sheet.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) { from = this.spot(event); sheet.setPointerCapture(event.pointerId); } });
    sheet.addEventListener("pointermove", (event) => {
      if (!from) return;
      const to = this.spot(event);
      if (band) band.remove();
      band = make("rect", { class: "band", x: Math.min(from[0], to[0]), y: Math.min(from[1], to[1]), width: Math.abs(to[0] - from[0]), height: Math.abs(to[1] - from[1]) }, sheet);
    });
    sheet.addEventListener("pointerup", (event) => {
      if (!from) return;
      const to = this.spot(event), wide = Math.abs(to[0] - from[0]), high = Math.abs(to[1] - from[1]), start = from;
      from = null;
      if (band) band.remove();
      if (wide < 12 || high < 12) return;
      const sorted = (scale, k) => [scale.back(start[k]), scale.back(to[k])].sort((u, v) => u - v);
      this.view = { x: sorted(this.across, 0), y: sorted(this.down, 1) };
      this.draw();
    });
    sheet.addEventListener("dblclick", () => this.zoomKey("0"));
  }
  zoomKey(key) {
    const factor = { "+": 1 / 1.5, "=": 1 / 1.5, "-": 1.5 }[key];
    if (key === "0") this.view = this.whole;
    else if (factor) {
      const around = ([low, high]) => { const middle = (low + high) / 2, half = ((high - low) / 2) * factor; return [middle - half, middle + half]; };
      this.view = { x: around(this.view.x), y: around(this.view.y) };
    } else return false;
    this.draw();
    return true;
  }
}

function distance(x, y, [a, b], [c, d]) {
  const [u, v] = [c - a, d - b], length = u * u + v * v;
  const t = length ? Math.max(0, Math.min(1, ((x - a) * u + (y - b) * v) / length)) : 0;
  return Math.hypot(x - a - t * u, y - b - t * v);
}

// ---- horizontal bars

class Bars extends Chart {
  constructor(figure) {
    super(figure);
    const legend = tag("div", { class: "legend" });
    if (this.data.legend.length > 1)
      this.data.legend.forEach((name, number) => {
        const item = tag("span", {}, legend), key = make("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, item);
        this.fill(make("rect", { x: 1, y: 1, width: 20, height: 10 }, key), number);
        item.append(name);
      });
    this.plot.after(legend);
  }
  fill(shape, part) {
    // the second round of colours is lighter, so that more than eight parts differ
    shape.setAttribute("fill", colour(part));
    shape.setAttribute("opacity", part >= 8 ? 0.5 : 0.9);
  }
  draw() {
    this.width = Math.max(240, this.plot.clientWidth);
    const { x, frames, origin } = this.data, bars = frames[Math.min(this.step, frames.length - 1)];
    const names = frames.flat().map((bar) => widthOf(bar.name)), beside = Math.max(...names) < 0.3 * this.width;
    const row = beside ? 26 : 40, height = bars.length * row + 52;
    const sheet = this.sheet(height);
    const ends = [origin, ...frames.flat().flatMap((bar) => bar.segments.flatMap((s) => [s.start, s.end]))];
    const [low, high] = [Math.min(...ends), Math.max(...ends)], pad = 0.02 * (high - low || 1);
    const box = { left: beside ? Math.max(...names) + 10 : 8, right: this.width - 24, top: 6, bottom: height - 44 };
    const scale = new Scale(false, low < origin ? low - pad : low, high + pad, box.left, box.right);
    this.ticks(scale, 14 + Math.max(46, ...scale.ticks(60).map((v) => widthOf(written(v, x.unit)))), true, sheet, box, x.unit);
    make("text", { class: "axis", x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" }, sheet, x.label);
    this.stops = [];
    bars.forEach((bar, number) => {
      const top = box.top + number * row + (beside ? 3 : 19), tall = beside ? row - 8 : 18;
      if (beside) make("text", { x: box.left - 8, y: top + tall / 2 + 4, "text-anchor": "end" }, sheet, bar.name);
      else make("text", { x: box.left, y: top - 4 }, sheet, bar.name);
      for (const { part, start, end, tip } of bar.segments) {
        const [from, to] = [scale.at(start), scale.at(end)].sort((u, v) => u - v);
        this.fill(make("rect", { x: from, y: top, width: Math.max(1, to - from), height: tall, stroke: "var(--paper)", "stroke-width": 1 }, sheet), part);
        const ring = (on) => make("rect", { class: "near", x: from, y: top, width: Math.max(1, to - from), height: tall }, on);
        const far = (a, b) => Math.hypot(Math.max(from - a, 0, a - to), Math.max(top - b, 0, b - top - tall)) ;
        this.stops.push({ x: (from + to) / 2, y: top, tip: `${bar.name}\n${tip}`, ring, far });
      }
    });
    const zero = scale.at(origin);
    make("line", { class: "frame", x1: zero, x2: zero, y1: box.top, y2: box.bottom }, sheet);
  }
}

// ---- the page

const charts = [...document.querySelectorAll("figure.chart")].map((figure) => (figure.dataset.kind === "lines" ? new Lines(figure) : new Bars(figure)));
for (const chart of charts) chart.draw();

for (const slider of document.querySelectorAll(".slider")) {
  const input = slider.querySelector("input"), said = slider.querySelector("output"), name = slider.dataset.slider;
  const texts = JSON.parse(slider.querySelector("script").textContent);
  const move = () => {
    const step = Number(input.value);
    said.textContent = texts[step];
    input.setAttribute("aria-valuetext", texts[step]);
    for (const chart of charts) if (chart.data.follows === name) chart.follow(step);
    for (const frame of document.querySelectorAll(`[data-frame-of="${name}"]`)) frame.hidden = Number(frame.dataset.frame) !== step;
  };
  input.addEventListener("input", move);
  move();
}

// lines of source and assembly that belong together
const links = new Map();
for (const one of document.querySelectorAll("[data-links]")) for (const link of one.dataset.links.split(" ")) { if (!links.has(link)) links.set(link, []); links.get(link).push(one); }
for (const one of document.querySelectorAll("[data-links]")) {
  const mark = (on) => { for (const link of one.dataset.links.split(" ")) for (const other of links.get(link)) other.classList.toggle("linked", on); };
  for (const [event, on] of [["pointerenter", true], ["pointerleave", false], ["focus", true], ["blur", false]]) one.addEventListener(event, () => mark(on));
}
})();
