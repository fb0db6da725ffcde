// The nights: what changed since the last one, and each case over time.

function nights() {
  const held = DATA.history;
  if (!held) {
    return [h("h2", {}, "History"), h("p", {}, "This page was made without a history. ",
      h("code", {}, "perfport history add RUN --into history"), " keeps a night, and ", h("code", {}, "perfport report --suite RESULTS --history history"), " shows it here.")];
  }
  const last = held.nights.length - 1;
  const now = held.series.filter(of => of.nights.at(-1) === last);
  const shown = h("div");
  const open = of => { shown.replaceChildren(course(of, held)); shown.scrollIntoView({behavior: "smooth", block: "start"}); };
  const judged = of => of.change === null ? "" : of.change > 1.02 ? "slower" : of.change < 1 / 1.02 ? "faster" : "same";
  const columns = [
    {name: "case", value: of => of.name, show: of => h("button", {type: "button", class: "variant", click: () => open(of)}, of.name)},
    {name: "device", value: of => of.device, show: of => of.device},
    {name: "last night", right: true, value: of => of.time.at(-1) ?? 0, show: of => of.time.at(-1) === null ? of.status.at(-1) : seconds(of.time.at(-1))},
    {name: "time against the nights before", right: true, value: of => of.change ?? 0, show: of => of.change === null ? "–" : verdict(judged(of), `${number(100 * (of.change - 1), 2)} %`)},
    {name: "what changed", show: of => of.events.filter(([night]) => night === last).map(([, what]) => what).join("; ") || "–"},
  ];
  const slower = now.filter(of => judged(of) === "slower").length;
  const [when, commit] = held.nights[last] || ["", ""];
  return [h("h2", {}, "History"), h("p", {}, `${held.nights.length} nights, the last of ${when} (commit ${commit}). ${slower} of ${now.length} cases are more than 2 % slower than the median of up to 7 nights before. `,
    h("code", {}, "perfport check"), " says which of them are regressions.", held.of > held.series.length ? ` The ${held.series.length} of ${held.of} cases with the largest change are shown.` : ""),
  sortable("Cases of the last night", columns, now, {sorted: [3, true]}), shown];
}

function course(of, held) {
  const points = of.nights.map((night, at) => ({night, date: new Date(`${held.nights[night][0].replace(" ", "T")}Z`), time: of.time[at], low: of.low[at], high: of.high[at], bound: of.bound[at], status: of.status[at], commit: held.nights[night][1]}));
  const timed = points.filter(point => point.time !== null), failed = points.filter(point => point.time === null);
  const events = of.events.map(([night, what]) => ({date: points.find(point => point.night === night)?.date, what})).filter(event => event.date);
  if (!timed.length) return section(of.name, h("p", {}, "No night has a time."));
  const unit = timed[0].time < 1e-6 ? [1e9, "ns"] : timed[0].time < 1e-3 ? [1e6, "µs"] : timed[0].time < 1 ? [1e3, "ms"] : [1, "s"];
  return section(`${of.name} on ${of.device}`, figure(`Time by night: ${of.name}`, {
    height: 260, x: {type: "utc", label: null}, y: {label: `↑ ${unit[1]}`},
    marks: [
      Plot.ruleX(timed, {x: "date", y1: point => point.low * unit[0], y2: point => point.high * unit[0], stroke: COLOURS[0], strokeOpacity: 0.4, strokeWidth: 4}),
      Plot.line(timed, {x: "date", y: point => point.time * unit[0], stroke: COLOURS[0]}),
      Plot.dot(timed, {x: "date", y: point => point.time * unit[0], fill: COLOURS[0], r: 3.5}),
      Plot.ruleX(events, {x: "date", stroke: COLOURS[1], strokeDasharray: "4,3"}),
      tip(timed, {x: "date", y: point => point.time * unit[0], title: point => `${held.nights[point.night][0]}, commit ${point.commit}\n${seconds(point.time, 4)} (${seconds(point.low, 4)}–${seconds(point.high, 4)})${point.bound ? `\nbound ${seconds(point.bound)}` : ""}`}, Plot.pointerX),
    ],
  }, [...events.map(event => `${event.date.toISOString().slice(0, 10)}: ${event.what}`), ...failed.map(point => `${point.date.toISOString().slice(0, 10)}: ${point.status}`)].slice(-8).join("; ")));
}
