// How well the best variant, and each single one, carries over to all devices.

const BEST = "(best on each)";

function portability() {
  const problems = d3.groups(DATA.portability, of => `${of.workload}/${of.problem}${of.precision === "fp32" ? "" : ` ${of.precision}`}`);
  const rows = problems.map(([name, held]) => {
    const best = held.find(of => of.application === BEST);
    const single = d3.greatest(held.filter(of => of !== best && of.architectural), of => of.platforms.length * 10 + of.architectural[0]);
    return {name, held, best, single};
  });
  const shown = h("div");
  const open = row => { shown.replaceChildren(problem(row)); shown.scrollIntoView({behavior: "smooth", block: "start"}); };
  const metric = of => of ? h("span", {title: `${percent(of[1])}–${percent(of[2])}`}, percent(of[0])) : "–";
  const columns = [
    {name: "problem", value: of => of.name, show: of => h("button", {type: "button", class: "variant", click: () => open(of)}, of.name)},
    {name: "devices", right: true, value: of => of.best?.platforms.length || 0, show: of => of.best?.platforms.length || 0},
    {name: "best variant on each", right: true, word: "portability", value: of => of.best?.architectural?.[0] ?? -1, show: of => [metric(of.best?.architectural), of.best?.architectural ? bar(of.best.architectural[0]) : null]},
    {name: "one variant everywhere", right: true, word: "portability", value: of => of.single?.architectural[0] ?? -1, show: of => [metric(of.single?.architectural), of.single ? bar(of.single.architectural[0]) : null]},
    {name: "which", value: of => of.single?.application || "", show: of => of.single?.application || "none"},
    {name: "its speed over the best known", right: true, value: of => of.single?.applied?.[0] ?? -1, show: of => metric(of.single?.applied)},
  ];
  return [h("h2", {}, "Portability"), h("p", {}, term("portability", "The metric"), " is the harmonic mean of the ", term("share", "shares of the bound"), " over all devices, 0 where a variant has no result on one of them. Click a problem for its devices."),
    sortable("Portability of each problem", columns, rows), navigation(rows), shown];
}

/** Portability against how much of the source all backends share. */
function navigation(rows) {
  const shared = new Map(DATA.converged.map(of => [`${of.workload}/${of.problem}`, of.share]));
  const points = rows.filter(of => of.best?.architectural && shared.has(of.name)).map(of => ({name: of.name, x: 100 * shared.get(of.name), y: 100 * of.best.architectural[0]}));
  if (!points.length) return null;
  return section("Navigation chart", figure("Portability against code convergence", {
    height: 300, x: {domain: [0, 100], label: "source lines that every backend compiles, % →"}, y: {domain: [0, 100], label: "↑ portability, %"},
    marks: [Plot.dot(points, {x: "x", y: "y", r: 5, fill: COLOURS[0]}), Plot.text(points, {x: "x", y: "y", text: "name", dy: -10, filter: (_, at) => points.length <= 8}), tip(points, {x: "x", y: "y", title: of => `${of.name}\n${of.x.toFixed(1)} % of the lines, ${of.y.toFixed(1)} % portability`})],
  }, "To the upper right: one source that runs well everywhere."));
}

function problem(row) {
  const order = d3.sort(row.held, of => of.application !== BEST, of => -(of.architectural?.[0] ?? -1)).slice(0, 8);
  const cells = order.flatMap(of => of.platforms.filter(each => each[2] !== null).map(([device, status, share]) => ({application: of.application, device, status, share: 100 * share})));
  const devices = [...new Set(cells.map(of => of.device))];
  const symbol = device => SYMBOLS[devices.indexOf(device) % SYMBOLS.length], colour = device => COLOURS[devices.indexOf(device) % COLOURS.length];
  const keys = devices.map(device => h("span", {class: "key"}, h("span", {class: "swatch", style: `background:${colour(device)}`, "aria-hidden": "true"}), device));
  const left = [...new Set(order.flatMap(of => of.left.map(([device, why]) => `${device}: ${why}`)))].slice(0, 6);
  return section(row.name, h("div", {class: "picks"}, keys), figure(`Shares of the bound by variant and device: ${row.name}`, {
    height: 60 + 34 * order.length, marginLeft: 170, x: {domain: [0, Math.max(100, d3.max(cells, of => of.share) || 0)], label: "share of the bound, % →"}, y: {domain: order.map(of => of.application), label: null},
    marks: [Plot.dot(cells, {x: "share", y: "application", fill: of => colour(of.device), symbol: of => symbol(of.device), r: 5}), tip(cells, {x: "share", y: "application", title: of => `${of.application}\n${of.device}\n${of.share.toFixed(1)} % (${of.status})`})],
  }, left.length ? `Left out: ${left.join("; ")}.` : ""), row.best && row.best.chips >= 3 ? cascade(order) : h("p", {class: "quiet"}, "A cascade needs three chips or more."));
}

/** Efficiency from the best platform of each application to its worst. */
function cascade(order) {
  const steps = order.flatMap(of => d3.sort(of.platforms.filter(each => each[2] !== null), each => -each[2]).map((each, at) => ({application: of.application, x: at + 1, y: 100 * each[2]})));
  return figure("Cascade", {
    height: 280, color: {legend: true, range: COLOURS, domain: order.map(of => of.application)}, x: {label: "platforms, from best to worst →", tickFormat: "d", ticks: d3.max(steps, of => of.x)}, y: {domain: [0, 100], label: "↑ share of the bound, %"},
    marks: [Plot.line(steps, {x: "x", y: "y", stroke: "application"}), Plot.dot(steps, {x: "x", y: "y", stroke: "application", symbol: "application"})],
  });
}
