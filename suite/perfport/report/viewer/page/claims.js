// Claims: what was published beside what is measured, on one axis for each claim.

const DECIDED = ["holds", "smaller", "absent", "opposite"];
const VERDICT_ORDER = ["holds", "smaller", "absent", "opposite", "cannot tell", "by construction", "not measured", "not applicable"];

/** Threshold, what is stated, no effect, and the measured intervals, on one axis. */
function axisOf(claim) {
  const held = claim.verdicts.filter(of => of.verdict !== "not applicable").flatMap(of => of.evidence.map(each => ({device: of.device, verdict: of.verdict, setting: each[0], value: each[1], low: each[2], high: each[3], keys: each[4]})));
  const marks = [claim.low, claim.high, claim.stated].filter(of => of !== null && of !== undefined);
  const values = [...marks, ...held.flatMap(of => [of.low, of.high])].filter(of => of !== null);
  if (!held.length || !values.length) return h("span", {class: "quiet"}, "no number");
  const log = d3.min(values) > 0 && d3.max(values) / d3.min(values) > 3;
  const [least, most] = d3.extent(values), room = (most - least || Math.abs(most) || 1) * 0.1;
  const width = 260, height = 20 + 9 * Math.min(held.length, 8);
  const x = (log ? d3.scaleLog([least / 1.3, most * 1.3], [8, width - 8]) : d3.scaleLinear([least - room, most + room], [8, width - 8])).clamp(true);
  const svg = d3.create("svg:svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height).attr("role", "img")
    .attr("aria-label", `claimed ${claim.threshold}; measured ${held.slice(0, 4).map(of => number(of.value)).join(", ")}`);
  const text = (at, words, kind, down) => svg.append("text").attr("x", Math.min(Math.max(x(at), 14), width - 20)).attr("y", down).attr("text-anchor", "middle").attr("class", kind).text(words);
  const low = claim.low ?? least / (log ? 1.3 : 1), high = claim.high ?? most * (log ? 1.3 : 1.1);
  svg.append("rect").attr("x", x(low)).attr("width", Math.max(x(high) - x(low), 1)).attr("y", 12).attr("height", height - 12).attr("class", "claimed");
  for (const edge of [claim.low, claim.high]) if (edge !== null) text(edge, number(edge), "edge", 9);
  if (claim.stated) {
    svg.append("path").attr("d", `M${x(claim.stated)},12V${height}`).attr("class", "stated");
    text(claim.stated, number(claim.stated), "edge", 9);
  }
  held.slice(0, 8).forEach((of, at) => {
    const y = 17 + 9 * at;
    svg.append("path").attr("d", `M${x(of.low)},${y}H${x(of.high)}`).attr("class", "measured");
    svg.append("circle").attr("cx", x(of.value)).attr("cy", y).attr("r", 3).attr("class", DECIDED.includes(of.verdict) ? of.verdict : "open").append("title").text(`${of.device}, ${of.setting}: ${number(of.value)} (${number(of.low)}–${number(of.high)}), ${of.verdict}; records ${of.keys.join(", ")}`);
  });
  return svg.node();
}

function verdictsOf(claim) {
  const said = claim.verdicts.filter(of => of.verdict !== "not applicable");
  if (!said.length) return h("span", {class: "quiet"}, "not about these devices");
  return h("ul", {class: "verdicts"}, said.map(of => h("li", {}, h("b", {class: `said ${of.verdict.replace(/ /g, "-")}`}, of.verdict), ` ${of.device}`, h("small", {}, of.reason))));
}

function claims() {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = DATA.claims.filter(of => (!state.workload || of.workload === state.workload) && words.every(word => JSON.stringify(of).toLowerCase().includes(word)));
  const counts = d3.rollup(wanted.flatMap(of => of.verdicts), of => of.length, of => of.verdict);
  const rank = of => d3.min(of.verdicts, each => VERDICT_ORDER.indexOf(each.verdict));
  const columns = [
    {name: "claim", value: of => `${of.workload} ${of.id}`, show: of => [h("b", {}, of.statement), h("small", {}, `${of.workload}/${of.problem}: ${of.id}. ${of.source}${of.published ? `. Published: ${of.published}` : ""}`)]},
    {name: "claimed and measured", show: axisOf},
    {name: "verdict", value: rank, show: verdictsOf},
  ];
  const search = h("input", {type: "search", value: state.q, "aria-label": "Search claims", placeholder: "column major, im2col ...", change: event => show({q: event.target.value})});
  return [h("h2", {}, "Claims of the publications"),
    h("p", {}, "Shaded: where the claim holds; dashed: the number that the source states (", term("published"), "); dots: measured here, with 95 % intervals. ", VERDICT_ORDER.filter(of => counts.get(of)).map(of => `${counts.get(of)} ${of}`).join(", "), "."),
    h("form", {class: "filters", role: "search", submit: event => event.preventDefault()},
      chooser("Workload", [["", "all workloads"], ...Object.keys(DATA.workloads).map(name => [name, name])], state.workload, workload => show({workload})), h("label", {class: "choice"}, h("span", {}, "Search"), search)),
    sortable("Claims", columns, wanted)];
}
