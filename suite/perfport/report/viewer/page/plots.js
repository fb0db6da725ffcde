// Plots of a ladder, drawn by Observable Plot: rooflines, curves over settings, samples.

const DARK = matchMedia("(prefers-color-scheme: dark)").matches;
// After Okabe and Ito, lighter on a dark ground: no two rest on colour alone, shapes go with them.
const COLOURS = DARK ? ["#56B4E9", "#E69F00", "#2BC79C", "#E79CC6", "#F2784B", "#F0E442", "#BBBBBB"] : ["#0072B2", "#D55E00", "#007A5A", "#B0528C", "#9A6A00", "#3A8FC4", "#222222"];
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye"];

function wide() {
  return Math.max(300, Math.min(820, document.documentElement.clientWidth - 60));
}

function figure(label, options, note = "") {
  const drawn = Plot.plot({width: wide(), height: 340, marginLeft: 64, grid: true, style: {fontSize: "12px", background: "transparent"}, ...options});
  for (const group of drawn.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label"); // one image, one name
  const image = drawn.tagName === "svg" ? drawn : drawn.querySelector("svg:last-of-type");
  image.setAttribute("role", "img");
  image.setAttribute("aria-label", label);
  return h("figure", {}, drawn, note ? h("figcaption", {}, note) : null);
}

/** Labels of a logarithmic axis: powers of ten, and 2 and 5 between them where there is room. */
function onLog(low, high, shown) {
  const wanted = Math.log10(high / low) < wide() / 250 ? [1, 2, 5] : [1];
  return value => wanted.includes(Math.round(value / Math.pow(10, Math.floor(Math.log10(value) + 1e-9)))) ? shown(value) : "";
}

/** What the pointer is near, in words. */
function tip(points, channels, pointer = Plot.pointer) {
  return Plot.tip(points, pointer({...channels, fill: "var(--raised)", stroke: "var(--line)"}));
}

/** The problem's ladders at their own headline size, one for each device. */
function besides(row) {
  return Object.values(row.cells).map(cell => DATA.ladders[cell.ladder]).filter(of => of.roofs);
}

/** Roofs of several devices and the variants below; a click on a device's name shows it alone. */
function roofline(ladder, row) {
  if (!ladder.roofs) return h("p", {class: "quiet"}, "No roofline: ", noRoofs(ladder));
  const others = besides(row).filter(of => of.roofs.unit === ladder.roofs.unit && of.site !== ladder.site);
  const all = [ladder, ...others].slice(0, COLOURS.length);
  const holder = h("div");
  const buttons = all.map((of, at) => h("button", {type: "button", class: "pick", "aria-pressed": String(at === 0), click: event => {
    const only = event.target.getAttribute("aria-pressed") === "true";
    event.target.setAttribute("aria-pressed", String(!only));
    draw();
  }}, h("span", {class: "swatch", style: `background:${COLOURS[at]}`, "aria-hidden": "true"}), of.site));
  function draw() {
    const picked = all.filter((_, at) => buttons[at].getAttribute("aria-pressed") === "true");
    holder.replaceChildren(drawRoofs(picked.length ? picked : [ladder], all));
  }
  draw();
  return h("div", {}, h("div", {class: "picks", role: "group", "aria-label": "Devices of the roofline"}, buttons), holder);
}

function noRoofs(ladder) {
  if (ladder.devices > 1) return "several devices took part, and roofs are those of one.";
  const timed = ladder.cases.filter(TIMED);
  if (!timed.length) return "no case has a time.";
  return "the problem counts no operations, or no ceiling of this device was measured.";
}

function drawRoofs(picked, all) {
  const points = [], lines = [], labels = [];
  for (const ladder of picked) {
    const colour = COLOURS[all.indexOf(ladder)], symbol = SYMBOLS[all.indexOf(ladder)], roofs = ladder.roofs;
    for (const of of ladder.cases.filter(TIMED)) {
      const at = of.at ? Object.entries(of.at)[0] : null;
      const x = at ? at[1] : roofs.intensity;
      const binds = of.binds ? `${of.binds[0][0]} binds, ${percent(of.binds[0][1])}` : "what binds is not known";
      points.push({x, y: roofs.operations / of.time[0], colour, symbol, of, known: Boolean(at),
        text: `${of.label} (${of.role})\n${ladder.site}\n${scaled(roofs.operations / of.time[0], `${roofs.unit}/s`)}, ${percent(of.share?.[0])} of the bound\n${binds}${at ? "" : "\nno traffic known: at the compulsory intensity"}`});
    }
  }
  const xs = points.map(of => of.x).concat(picked.map(of => of.roofs.intensity));
  const ridges = picked.flatMap(of => Object.values(of.roofs.slopes).map(slope => (d3.max(Object.values(of.roofs.flats)) || 0) / slope)).filter(Boolean);
  const [left, right] = [d3.min([...xs, ...ridges]) / 2, d3.max([...xs, ...ridges]) * 3];
  for (const ladder of picked) {
    const colour = COLOURS[all.indexOf(ladder)], {slopes, flats, unit} = ladder.roofs;
    const peak = d3.max(Object.values(flats)) || Infinity;
    for (const [order, [name, slope]] of Object.entries(slopes).entries()) {
      const end = Math.min(right, peak / slope);
      if (end <= left) continue;
      const group = `${ladder.site} ${name}`, text = `${name} ${scaled(slope, "B/s")}\n${ladder.site}`;
      lines.push({x: left, y: slope * left, group, colour, text}, {x: end, y: slope * end, group, colour, text});
      const along = left * Math.pow(end / left, Math.min(0.05 + 0.17 * order, 0.8)); // apart from those of close roofs
      labels.push({x: along, y: slope * along, text: name, colour});
    }
    for (const [name, flat] of Object.entries(flats)) {
      const start = Math.max(left, flat / d3.max(Object.values(slopes)));
      const group = `${ladder.site} ${name}`, text = `${name} ${scaled(flat, `${unit}/s`)}\n${ladder.site}`;
      lines.push({x: start, y: flat, group, colour, text}, {x: right, y: flat, group, colour, text});
      labels.push({x: right / 1.1, y: flat, text: name, colour, end: true});
    }
  }
  const bottom = d3.min(points, of => of.y) / 3, highest = d3.max(lines.concat(points), of => of.y) * 1.6;
  const without = picked.flatMap(ladder => ladder.cases.filter(of => !TIMED(of)).map(of => `${of.label} (${of.status})`));
  const note = "Roofs: measured ceilings. Filled: at its memory traffic; hollow: traffic not known. Hover a point for what limits it."
    + (without.length ? ` No point: ${[...new Set(without)].join(", ")}.` : "");
  return figure("Roofline", {
    height: 400, marginRight: 24,
    x: {type: "log", domain: [left, right], label: "useful operations per byte →", tickFormat: onLog(left, right, value => number(value, 2))},
    y: {type: "log", domain: [bottom, highest], label: `↑ useful ${picked[0].roofs.unit}/s`, tickFormat: onLog(bottom, highest, value => scaled(value, "", 2))},
    marks: [
      Plot.line(lines, {x: "x", y: "y", z: "group", stroke: "colour", strokeWidth: 1.6}),
      Plot.text(labels, {x: "x", y: "y", text: "text", fill: "colour", dy: -8, textAnchor: "start", filter: of => !of.end}),
      Plot.text(labels, {x: "x", y: "y", text: "text", fill: "colour", dy: -8, textAnchor: "end", filter: of => of.end}),
      Plot.ruleX(picked, {x: of => of.roofs.intensity, strokeDasharray: "2,4", strokeOpacity: 0.6}),
      Plot.dot(points, {x: "x", y: "y", stroke: "colour", symbol: "symbol", fill: of => of.known ? of.colour : "none", r: 5}),
      tip(points, {x: "x", y: "y", title: "text"}),
    ],
  }, note);
}

/** Samples as dots along the time axis, with the interval of the median. */
function samples(of) {
  if (!of.samples) return null;
  const [middle, low, high] = of.time;
  const unit = middle < 1e-6 ? [1e9, "ns"] : middle < 1e-3 ? [1e6, "µs"] : middle < 1 ? [1e3, "ms"] : [1, "s"];
  return figure(`Samples of ${of.label}`, {
    height: 110, marginLeft: 20, grid: false, y: {axis: null}, x: {label: `${unit[1]} →`},
    marks: [
      Plot.rectX([of], {x1: low * unit[0], x2: high * unit[0], fill: COLOURS[0], fillOpacity: 0.2}),
      Plot.ruleX([middle * unit[0]], {stroke: COLOURS[0], strokeWidth: 2}),
      Plot.dotX(of.samples, Plot.dodgeY({x: value => value * unit[0], fill: "currentColor", r: 3, title: value => seconds(value, 5), anchor: "middle"})),
    ],
  }, `${of.n} samples of the ${of.clock} clock; line: median, band: 95 % interval.`);
}
