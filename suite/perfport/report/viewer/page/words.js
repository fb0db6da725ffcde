// What words and numbers look like on the page.

const WORDS = {
  rung: "One step of the published optimisation story: each rung changes one thing of the rung before it.",
  beyond: "A variant of this suite that goes further than what was published.",
  control: "A variant that isolates one effect. It is shown, but is never called best.",
  peer: "A library or host code that one would use instead, measured in the same run with the same checks.",
  share: "Share of the bound: how much of what the device could do at most is reached. 100 % is the roof.",
  bound: "The least time that the measured ceilings of this device allow for the useful work of the problem, whatever the approach.",
  approach: "How many times as fast this variant could be with the memory traffic and operations that it causes.",
  perfect: "How many times as fast a perfect kernel could be: the time over the bound.",
  published: "A figure that others published, on other hardware. It is not measured here.",
  modelled: "Carried over from times measured on live devices, by the ceilings of the device; its interval holds nine of ten times.",
  ceiling: "The highest rate that a small kernel of the suite reached on this device: memory bandwidth, arithmetic and so on.",
  portability: "Harmonic mean of the shares of the bound over all devices, 0 where one has no result (Pennycook's metric).",
  wall: "Compared by wall time, because one side has no device events or reads back in its loop; by a variant's next result where the fastest has no wall time.",
  interval: "95 % interval of the median time.",
};
const MARKS = {
  "†": "above the measured bound within its uncertainty", "‡": "contended: other load or throttling was seen, or in how its clocks agree; not ranked",
  "§": "noisy: the noise target was missed", "◊": "stale: the code has changed since it was measured",
  "¶": "failed in a later run", "¤": "a variant that took less time was contended, and is not ranked",
  "○": "not the headline size: there is no result of that",
};
const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** A number with three digits, or so many. */
function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size > 5) return value.toExponential(digits - 1);
  return value.toFixed(Math.max(digits - 1 - size, 0));
}

function seconds(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  for (const [limit, factor, unit] of [[1e-6, 1e9, "ns"], [1e-3, 1e6, "µs"], [1, 1e3, "ms"]]) {
    if (Math.abs(value) < limit) return `${number(value * factor, digits)} ${unit}`;
  }
  return `${number(value, digits)} s`;
}

function scaled(value, unit, digits = 3) {
  if (value === null || value === undefined) return "–";
  const [factor, prefix] = PREFIXES.find(([least]) => Math.abs(value) >= least) || [1, ""];
  return `${number(value / factor, digits)} ${prefix}${unit}`;
}

/** A metric in the prefix that suits it, whatever prefix its unit has; by the rule of quantities.rate. */
function rate(value, unit, digits = 3) {
  if (unit === "s") return seconds(value, digits);
  if (value === null || value === undefined || !unit.endsWith("/s")) return `${number(value, digits)} ${unit}`.trim();
  const prefixed = /^(?:[kMGT](?=[A-Z])|M(?=[b-df-hj-np-tv-xz]))/.test(unit);
  const factor = prefixed ? {k: 1e3, M: 1e6, G: 1e9, T: 1e12}[unit[0]] : 1;
  const stem = prefixed ? unit.slice(1) : unit;
  const shown = scaled(value * factor, "", digits);
  const apart = (factor === 1 || /^[a-z]/.test(stem)) && !shown.endsWith(" ");
  return shown + (apart ? " " : "") + stem;
}

function percent(share, unit = " %") {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  return (Math.abs(value) > 0 && Math.abs(value) < 0.995 ? number(value, 2) : value.toFixed(1)) + unit;
}

/** "2.1 × (2.0–2.2)" of [value, low, high, verdict]. */
function times(of, wide = true) {
  if (!of) return "–";
  return `${number(of[0])} ×` + (wide ? ` (${number(of[1])}–${number(of[2])})` : "");
}

const SHAPES = {faster: "▲", slower: "▼", same: "=", ambiguous: "≈"};
/** A verdict as a shape and a colour. */
function verdict(of, text) {
  return h("span", {class: `verdict ${of}`}, `${SHAPES[of] || ""} ${text}`);
}

function marked(marks) {
  return [...(marks || "")].map(mark => h("abbr", {class: "mark", title: MARKS[mark] || ""}, mark));
}

function settings(values) {
  return Object.entries(values || {}).map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ");
}
