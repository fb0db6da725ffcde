// Pages that are tables: where work pays, cross-tuning, ceilings, failures, runs.

function opens(ladder, key = "") {
  return h("a", {href: address({open: DATA.ladders.indexOf(ladder), case: key})}, `${ladder.workload}/${ladder.problem}`);
}

function pays() {
  const rows = DATA.pays.map(of => ({...of, of: DATA.ladders[of.ladder]})).map(of => ({...of, best: leading(of.of) || d3.least(of.of.cases.filter(TIMED), each => each.time[0])}));
  const columns = [
    {name: "problem", value: of => of.of.problem, show: of => [opens(of.of), of.of.precision === "fp32" ? "" : ` ${of.of.precision}`]},
    {name: "device", value: of => of.of.site, show: of => of.of.site},
    {name: "best variant", value: of => of.best.label, show: of => of.best.label},
    {name: "times the bound", right: true, word: "perfect", value: of => of.best.perfect?.[0], show: of => [`${number(of.best.perfect?.[0])} × `, marked(leading(of.of) ? of.of.marks : of.best.marks)]},
    {name: "bound by", value: of => of.by, show: of => of.by},
    {name: "saved per execution", right: true, value: of => of.saved, show: of => seconds(of.saved)},
    {name: "this approach", right: true, word: "approach", value: of => of.best.approach?.[0] ?? 0, show: of => of.best.approach ? `${number(of.best.approach[0])} ×` : "–"},
    {name: "what binds", value: of => of.best.binds?.[0][0] || "", show: of => of.best.binds ? `${of.best.binds[0][0]}, ${percent(of.best.binds[0][1])}` : "–"},
    {name: "what to do next", long: true, show: of => of.best.next},
  ];
  return [h("h2", {}, "Where work pays most"), h("p", {}, "The best variant of each problem and device by how many times its time is of the ", term("bound"), ": the most that a perfect kernel could gain. Seconds are of one execution."),
    sortable("Best variants by what could be gained", columns, rows)];
}

function tuning() {
  if (!DATA.tuning.length) return [h("h2", {}, "Cross-tuning"), h("p", {}, "No variant ran with the parameters of another device.")];
  const tables = d3.groups(DATA.tuning, of => `${of.workload}/${of.problem}, ${of.setting}: ${of.variant}`).map(([name, cells]) => {
    const devices = [...new Set(cells.map(of => of.device))];
    const rows = d3.groups(cells, of => of.profile).map(([profile, held]) => ({profile, held}));
    const cell = (row, device) => {
      const of = row.held.find(each => each.device === device);
      if (!of) return "–";
      if (!of.slowdown) return of.status;
      return h("span", {class: `heat h${Math.min(4, Math.floor(Math.log2(Math.max(of.slowdown[0], 1)) * 2))}`, title: `${number(of.slowdown[1])}–${number(of.slowdown[2])}, key ${of.key}`}, `${number(of.slowdown[0])} ×`);
    };
    return section(name, sortable(name, [{name: "parameters of", value: of => of.profile, show: of => of.profile},
      ...devices.map(device => ({name: device, right: true, value: of => of.held.find(each => each.device === device)?.slowdown?.[0] ?? 0, show: row => cell(row, device)}))], rows));
  });
  return [h("h2", {}, "Cross-tuning"), h("p", {}, "How many times slower a variant is with the tuning parameters of another device than with the best of them; native are its own. 1 is best."), tables];
}

function ceilings() {
  const names = [...new Map(DATA.ceilings.flatMap(of => of.entries.map(([shown, name]) => [name, shown])))];
  const held = new Map(DATA.ceilings.map(of => [of.device, new Map(of.entries.map(([, name, ...values]) => [name, values]))]));
  const unit = name => /read|copy|triad|conflict|gather|h2d|d2h|dram/.test(name) ? "B/s" : /latency|span|barrier/.test(name) ? "s" : /fma|mma/.test(name) ? "FLOP/s" : "op/s";
  const columns = [{name: "ceiling", value: of => of[1], show: of => [of[1], h("small", {}, of[0])]},
    ...DATA.ceilings.map(({device}) => ({name: device, right: true, value: of => held.get(device).get(of[0])?.[0] ?? -1, show: of => {
      const value = held.get(device).get(of[0]);
      if (!value) return "–";
      const shown = unit(of[0]) === "s" ? seconds(value[0]) : scaled(value[0], unit(of[0]));
      return h("span", {title: `95 % interval ${number(value[1])}–${number(value[2])} ${unit(of[0])}`}, shown);
    }}))];
  return [h("h2", {}, "Ceilings"), h("p", {}, "What small kernels of the suite reached at most on each device: the ", term("ceiling", "ceilings"), " that bounds are made of (measured)."), sortable("Ceilings by device", columns, names)];
}

function failures() {
  const rows = DATA.ladders.flatMap(ladder => ladder.cases.filter(of => of.status !== "ok").map(of => ({ladder, of})));
  const total = Object.entries(DATA.failures).map(([workload, counts]) => h("li", {}, h("b", {}, workload), `: ${Object.entries(counts).map(([status, count]) => `${count} ${status}`).join(", ")}`));
  const grouped = d3.groups(rows, ({ladder, of}) => [of.status, ladder.workload, ladder.problem, of.variant, ladder.site, of.reason].join("\u0000")).map(([, held]) => ({...held[0], count: held.length}));
  const worst = ["impossible", "wrong", "crashed", "timeout", "out_of_memory", "compile_error", "contended", "unsupported", "unavailable"];
  const columns = [
    {name: "status", value: of => worst.indexOf(of.of.status), show: of => of.of.status},
    {name: "problem", value: of => of.ladder.problem, show: of => opens(of.ladder, of.of.key)},
    {name: "variant", value: of => of.of.variant, show: of => of.of.variant},
    {name: "device", value: of => of.ladder.site, show: of => of.ladder.site},
    {name: "cases", right: true, value: of => of.count, show: of => of.count},
    {name: "why", value: of => of.of.reason || "", show: of => of.of.reason || "other load or throttling was seen"},
  ];
  return [h("h2", {}, "What failed, and what could not run"), h("ul", {}, total), sortable("Cases without a ranked result", columns, grouped, {sorted: [0, false]})];
}

function runs() {
  const columns = ["name", "started", "host", "commit", "version", "records"].map(name => ({name, right: name === "records", value: of => of[name], show: of => of[name]}));
  return [h("h2", {}, "Runs"), h("p", {}, `${DATA.cases} cases of ${DATA.runs.length} runs on ${DATA.devices} devices.`), sortable("Where the results come from", columns, DATA.runs)];
}
