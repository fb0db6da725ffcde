// Curves over a parameter or a tunable, with the places where one variant overtakes another.

const MOST_CURVES = 7;

/** Axes of numbers along which the cases of a place differ, with three values or more. */
function axes(same) {
  const found = new Map();
  for (const [kind, values] of [["parameters", same.map(of => of.parameters)], ["tunables", same.flatMap(of => of.cases.filter(RANKED).map(each => each.tunables || {}))]]) {
    for (const name of new Set(values.flatMap(Object.keys))) {
      const numbers = new Set(values.map(of => of[name]).filter(value => typeof value === "number"));
      if (numbers.size >= 3) found.set(name, kind);
    }
  }
  return found;
}

/** What is held fixed along an axis, as text: curves join cases of equal other settings alone. */
function fixed(values, axis) {
  return settings(Object.fromEntries(Object.entries(values || {}).filter(([name]) => name !== axis).sort()));
}

function points(same, axis, kind) {
  return same.flatMap(of => of.cases.filter(RANKED).map(each => {
    const values = kind === "parameters" ? of.parameters : each.tunables;
    return {x: values?.[axis], y: each.metric, variant: each.variant, role: each.role, of: each, ladder: of,
      apart: kind === "parameters" ? `${of.preset}; ${fixed(of.parameters, axis)}` : of.setting,
      curve: kind === "parameters" ? each.label : `${each.variant} ${fixed(each.tunables, axis)}`};
  })).filter(point => typeof point.x === "number" && point.y !== undefined);
}

/** Where the ratio of two curves passes 1: linear in its logarithm between two settings. */
function crossings(one, two) {
  const there = new Map(two.map(point => [point.x, point]));
  const both = d3.sort(one.filter(point => there.has(point.x)), point => point.x).map(point => [point.x, Math.log(point.y / there.get(point.x).y), point.y]);
  return d3.pairs(both).filter(([a, b]) => (a[1] < 0) !== (b[1] < 0)).map(([a, b]) => {
    const along = a[1] / (a[1] - b[1]);
    return {x: a[0] + (b[0] - a[0]) * along, y: a[2] * Math.pow(b[2] / a[2], along), up: b[1] >= 0};
  });
}

function curves(ladder) {
  const same = DATA.ladders.filter(of => of.workload === ladder.workload && of.problem === ladder.problem && of.site === ladder.site && of.precision === ladder.precision);
  const found = axes(same);
  if (!found.size) return h("p", {class: "quiet"}, "No curve: this device ran the problem at fewer than three values of every parameter and tunable.");
  const holder = h("div");
  let axis = [...found.keys()][0], apart = "";
  function draw() {
    const all = points(same, axis, found.get(axis));
    const groups = d3.sort(d3.groups(all, of => of.apart).filter(([, held]) => new Set(held.map(of => of.x)).size >= 3), ([, held]) => -held.length);
    const group = groups.find(([name]) => name === apart) || groups[0];
    const choice = chooser("Along", [...found.keys()].map(name => [name, name]), axis, value => { axis = value; apart = ""; draw(); });
    const others = groups.length > 1 ? chooser("At", groups.map(([name]) => [name, name]), group[0], value => { apart = value; draw(); }) : null;
    holder.replaceChildren(h("div", {class: "filters"}, choice, others), group ? drawCurves(group[1], axis, ladder) : h("p", {class: "quiet"}, "No three of these cases differ by this alone."));
  }
  draw();
  return holder;
}

function drawCurves(held, axis, ladder) {
  const higher = ladder.direction === "higher";
  const byCurve = d3.sort(d3.groups(held, of => of.curve).filter(([, of]) => of.length > 1), ([, of]) => (higher ? -1 : 1) * d3.median(of, each => each.y));
  const peers = byCurve.filter(([, of]) => of[0].role === "peer").slice(0, 3);
  const own = byCurve.filter(([, of]) => of[0].role !== "peer").slice(0, MOST_CURVES - peers.length);
  const drawn = [...own, ...peers];
  const flat = drawn.flatMap(([name, of], at) => of.map(point => ({...point, name, colour: COLOURS[at % COLOURS.length], symbol: SYMBOLS[at % SYMBOLS.length]})));
  const met = own.length ? peers.flatMap(([name, of]) => crossings(own[0][1], of).map(cross => ({...cross, text: `${own[0][0]} ${cross.up === higher ? "overtakes" : "falls behind"} ${name} at ${axis} = ${number(cross.x)}`}))) : [];
  const [low, high] = d3.extent(flat, of => of.y), yLog = low > 0 && high / low > 10;
  const xs = flat.map(of => of.x), wideSpan = d3.min(xs) > 0 && d3.max(xs) / d3.min(xs) > 20;
  const shapes = drawn.map(([name, of], at) => h("span", {class: "key"}, h("span", {class: "swatch", style: `background:${COLOURS[at % COLOURS.length]}`, "aria-hidden": "true"}), `${name}${of[0].role === "peer" ? " (peer)" : ""}`));
  const note = `${byCurve.length > drawn.length ? `The ${drawn.length} fastest of ${byCurve.length} curves. ` : ""}${met.map(of => of.text).join("; ") || (peers.length ? "No peer is overtaken along this axis." : "")}`;
  return h("div", {}, h("div", {class: "picks"}, shapes), figure(`Curves over ${axis}`, {
    x: {label: `${axis} →`, inset: 8, ...(wideSpan ? {type: "log", tickFormat: onLog(d3.min(xs), d3.max(xs), value => number(value, 2))} : {ticks: 6})},
    y: {label: `↑ ${ladder.unit}`, inset: 8, ...(yLog ? {type: "log", tickFormat: onLog(low, high, value => number(value, 2))} : {zero: true})},
    marks: [
      Plot.line(flat, {x: "x", y: "y", z: "name", stroke: "colour", sort: "x", filter: of => of.role !== "peer"}),
      Plot.line(flat, {x: "x", y: "y", z: "name", stroke: "colour", sort: "x", filter: of => of.role === "peer", strokeDasharray: "5,4"}),
      Plot.dot(flat, {x: "x", y: "y", stroke: "colour", symbol: "symbol", r: 4}),
      Plot.dot(met, {x: "x", y: "y", r: 8, stroke: "currentColor", strokeWidth: 1.5}),
      tip(flat, {x: "x", y: "y", title: of => `${of.name}\n${axis} = ${of.x}\n${rate(of.y, ladder.unit)} (${seconds(of.of.time[0])}, n = ${of.of.n})\nkey ${of.of.key}`}),
    ],
  }, note));
}
