// One problem on one device: all cases by time, what each rung gained, and the whole story of a case.

function ladderTable(ladder) {
  const timed = ladder.cases.filter(TIMED);
  const ordered = state.by === "rung" ? ladder.cases : [...d3.sort(timed, of => of.time[0]), ...ladder.cases.filter(of => !TIMED(of))];
  const kept = ordered.filter(of => !state.role || of.role === state.role);
  const fastest = d3.min(timed, of => of.time[0]);
  const body = h("tbody", {}, kept.map(of => ladderRow(ladder, of, fastest)));
  const heads = ["variant", "time", "share of the bound", "over the rung before", "over the first rung"];
  const order = chooser("Order", [["time", "fastest first"], ["rung", "as published, rung by rung"]], state.by, by => show({by}));
  return h("div", {}, h("div", {class: "filters"}, order), h("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Ladder"},
    h("table", {class: "cards ladder"}, h("caption", {}, "Click a variant for its samples, what binds it, its kernel and the command that runs it again."),
      h("thead", {}, h("tr", {}, heads.map(head => h("th", {scope: "col"}, head)))), body)));
}

function ladderRow(ladder, of, fastest) {
  const best = ladder.best !== undefined && ladder.cases[ladder.best] === of;
  const open = state.case === of.key;
  const toggle = () => show({case: open ? "" : of.key});
  const name = h("button", {type: "button", class: "variant", "aria-expanded": String(open), click: toggle}, of.label);
  const role = h("span", {class: `tag ${of.role}`, title: WORDS[of.role]}, of.role === "rung" ? `rung ${of.rung}` : of.role);
  const label = title => ({"data-label": title});
  let cells;
  if (!TIMED(of)) {
    cells = [h("td", {colspan: 4, class: "quiet", ...label("why")}, `${of.status}: ${of.reason}`)];
  } else {
    cells = [
      h("td", label("time"), h("span", {title: WORDS.interval}, seconds(of.time[0]), " ", marked(of.marks)), h("small", {}, rate(of.metric, ladder.unit)), bar(fastest / of.time[0], of.role)),
      h("td", label("share of the bound"), of.share ? percent(of.share[0]) : "–", of.share ? bar(of.share[0]) : null),
      h("td", label("over the rung before"), gain(of.previous)),
      h("td", label("over the first rung"), of.role === "peer" && of.over ? [gain(of.over), h("small", {}, "best variant over this peer")] : gain(of.first)),
    ];
  }
  const row = h("tr", {class: `${best ? "best" : ""} ${open ? "open" : ""}`}, h("th", {scope: "row"}, name, role, best ? h("span", {class: "tag top"}, "best") : null), cells);
  return open ? [row, h("tr", {class: "story"}, h("td", {colspan: 5}, story(ladder, of)))] : row;
}

function gain(of) {
  return of ? h("span", {title: `95 % interval ${number(of[1])}–${number(of[2])}`}, verdict(of[3], times(of, false))) : "–";
}

/** What binds, in one sentence. */
function binding(of) {
  if (!of.binds?.length) return "What binds it is not known: no traffic is stated, or no ceiling applies.";
  const [first, second] = of.binds;
  const said = first[1] < 0.5 ? `No ceiling explains the time; the largest term, ${first[0]}, is ${percent(first[1])} of it` : `${first[0]} binds: ${percent(first[1])} of the time`;
  const gains = [of.approach ? `this approach could be ${number(of.approach[0])} × as fast` : "", of.perfect ? `a perfect kernel ${number(of.perfect[0])} × (${of.perfect[1]})` : ""].filter(Boolean);
  return `${said}${second ? `; next ${second[0]}, ${percent(second[1])}` : ""}.${gains.length ? ` At most, ${gains.join(", ")}.` : ""}`;
}

function story(ladder, of) {
  const run = DATA.runs[ladder.run];
  const verified = of.verified
    ? `${of.verified[0] ? "passed" : "FAILED"}: relative L2 error ${number(of.verified[1], 2)}, ${of.verified[2]} of ${of.verified[3]} elements checked`
    : "not checked";
  const facts = [
    ["time", TIMED(of) ? `${seconds(of.time[0], 4)} (${seconds(of.time[1], 4)}–${seconds(of.time[2], 4)}), n = ${of.n}, ${of.clock} clock, ${of.cache} cache, ± ${percent(of.noise)}, ${of.launches || 0} launches` : of.reason],
    ["verified", verified], ["tunables", settings(of.tunables) || "none"], ["setting", `${ladder.setting}; ${ladder.inputs}`],
    ["where", `${ladder.site}, ${ladder.chip}, ${ladder.host}`], ["run", `${run.name}, ${run.started}, commit ${run.commit}`], ["key", of.key],
  ];
  return h("div", {class: "told"},
    TIMED(of) ? [h("p", {}, h("b", {}, "What binds it: "), binding(of)), of.next ? h("p", {}, h("b", {}, "Next: "), of.next) : null, samples(of)] : null,
    h("dl", {}, facts.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
    h("p", {}, "Run it again:"), command(`perfport show ${of.key} --rerun --results ${run.folder}`),
    sourceOf(ladder, of));
}
