// Devices that nobody here has: measured, published, modelled, or why there is no number.

const NUMBERED = ["measured", "published", "modelled"];

/** A cell's number with its mark, or the word for having none. */
function said([kind, value, low, high, why, marks], unit) {
  if (!NUMBERED.includes(kind)) return h("span", {class: "quiet", title: why}, kind || "–");
  const shown = unit === "s" ? seconds(value) : rate(value, unit);
  if (kind === "measured") return h("span", {class: "value", title: "measured"}, shown, " ", marked(marks));
  if (kind === "published") return h("span", {title: `published: ${why}`}, `${shown} (published)`);
  const ends = unit === "s" ? `${seconds(low)}–${seconds(high)}` : `${rate(low, unit)}–${rate(high, unit)}`;
  return h("span", {title: `modelled, 90 % interval ${ends}; carried over from ${why}`}, `≈ ${shown}`);
}

/** Of a device's variants the one with the best number, or else the first. */
function bestOf(of, at) {
  const cells = Object.entries(of.cells).map(([variant, cells]) => ({variant, cell: cells[at]}));
  const numbered = cells.filter(each => NUMBERED.includes(each.cell[0]));
  const own = numbered.filter(each => each.cell[0] !== "published");
  const pool = own.length ? own : numbered;
  const better = of.direction === "lower" ? d3.least : d3.greatest;
  return better(pool, each => each.cell[1]) || cells[0];
}

function modelled() {
  const intro = h("p", {}, "Variants on every device profile. ≈ is ", term("modelled"), " from times measured on live devices, with a 90 % interval (hover); it is in no claim, metric or ratio. No ground: the interval would span more than a factor of 4. How far the model is off stands in predictions.md.");
  if (!DATA.modelled.length) return [h("h2", {}, "Modelled devices"), h("p", {}, "Nothing that GPUs ran can be carried over.")];
  const devices = [...new Set(DATA.modelled.flatMap(of => of.devices))];
  const columns = [{name: "problem", value: of => of.problem, show: of => [of.problem, of.precision === "fp32" ? "" : ` ${of.precision}`, h("small", {}, of.setting)]},
    ...devices.map(device => ({name: device, value: of => of.devices.indexOf(device), show: of => {
      const at = of.devices.indexOf(device);
      if (at < 0) return "–";
      const {variant, cell} = bestOf(of, at);
      return [said(cell, of.unit), NUMBERED.includes(cell[0]) ? h("small", {}, variant) : ""];
    }}))];
  const each = DATA.modelled.map(of => section(`${of.workload}/${of.problem}, ${of.precision}: ${of.setting}`,
    sortable(`${of.problem}, ${of.precision}, ${of.setting}: by variant and device`, [{name: "variant", value: row => row[0], show: row => row[0]},
      ...of.devices.map((device, at) => ({name: device, value: row => row[1][at][1] ?? -1, show: row => said(row[1][at], of.unit)}))], Object.entries(of.cells))));
  return [h("h2", {}, "Modelled devices"), intro, sortable("Best variant of each problem on each device", columns, DATA.modelled), each];
}
