// The first screen: every problem by every device.

// Columns of published figures take room that only wide windows have, and cards, one below the other.
const ROOMY = matchMedia("(min-width: 68rem), (max-width: 44rem)");
const SIZES = ["tiny", "quick", "full", "large", "paper"];

function filters() {
  const distinct = values => [...new Set(values)];
  const all = text => [["", text]];
  const columns = DATA.columns.map((column, at) => [at, `${column.chip}, ${column.platform}`]);
  const presets = distinct(DATA.ladders.map(of => of.preset)).filter(Boolean);
  const sizes = d3.sort(presets, of => SIZES.includes(of) ? SIZES.indexOf(of) : SIZES.length);
  const change = name => value => show({[name]: value});
  const search = h("input", {type: "search", value: state.q, placeholder: "problem or variant", "aria-label": "Search",
    input: event => show({q: event.target.value}, true)});
  return h("form", {class: "filters", role: "search", submit: event => event.preventDefault()},
    chooser("Device", [...all("all devices"), ...columns], state.device, change("device")),
    chooser("Workload", [...all("all workloads"), ...Object.keys(DATA.workloads).map(name => [name, name])], state.workload, change("workload")),
    chooser("Precision", [...all("all classes"), ...distinct(DATA.rows.map(of => of.precision)).map(of => [of, of])], state.precision, change("precision")),
    chooser("Size", [...all("headline size"), ...sizes.map(of => [of, of])], state.size, change("size")),
    chooser("Show", [...all("best variant"), ["rung", "best rung"], ["beyond", "best beyond"], ["peer", "best peer"]], state.role, change("role")),
    chooser("Order", [...all("by workload"), ["share", "least of the bound first"], ["peer", "worst against peers first"]], state.sort, change("sort")),
    h("label", {class: "choice"}, h("span", {}, "Search"), search));
}

/** The ladder and case that a cell shows under the filters, if there are any. */
function shownIn(row, column) {
  const cell = row.cells[column];
  let ladder = cell ? DATA.ladders[cell.ladder] : null;
  if (state.size) {
    const sized = ladders(row).filter(of => of.column === column && of.preset === state.size && leading(of, state.role));
    ladder = d3.least(sized, of => of.devices) || null;
  }
  return ladder ? {ladder, best: leading(ladder, state.role), off: !state.size && cell.off, cell: state.size ? null : cell} : null;
}

function facts(row, column) {
  const {ladder, best, cell} = shownIn(row, column) || {};
  return {share: best?.share?.[0] ?? 2, peer: !state.role && ladder?.versus ? ladder.versus[0] : 1e9, published: cell?.published};
}

function cellOf(row, column) {
  const found = shownIn(row, column);
  const {chip, platform} = DATA.columns[column];
  if (!found) return h("td", {class: "none", "data-label": `${chip}, ${platform}`}, h("span", {title: "not run, or nothing that can run here"}, "–"));
  const {ladder, best, off, cell} = found;
  const at = DATA.ladders.indexOf(ladder);
  const open = () => show({open: at, case: ""});
  if (!best) {
    return h("td", {"data-label": `${chip}, ${platform}`}, h("button", {type: "button", class: "cell", "data-ladder": at, "aria-haspopup": "dialog", click: open}, "none is ok"));
  }
  const notes = [...(best === leading(ladder) ? ladder.marks || "" : best.marks || ""), ...(off ? "○" : "")];
  const beside = rival(ladder, cell);
  const parts = [
    h("span", {class: "unseen"}, `${row.problem} ${row.precision} on ${chip}, ${platform}: `),
    h("span", {class: "value"}, rate(best.metric, ladder.unit), " ", marked(notes)),
    best.share ? h("span", {class: "reach", title: WORDS.share}, bar(best.share[0]), percent(best.share[0])) : null,
  ];
  if (state.role !== "peer") {
    parts.push(beside && !state.role
      ? h("span", {class: "against", title: WORDS.peer}, verdict(beside.versus[3], `${number(beside.versus[0])} × ${beside.name}`), " ",
        beside.wall ? h("abbr", {class: "mark", title: WORDS.wall}, "(wall) ") : null, marked(beside.marks))
      : h("span", {class: "against quiet", title: WORDS.peer}, beside ? "" : ladder.peerless));
  }
  if (cell?.published && !state.role) {
    parts.push(h("span", {class: "against", title: WORDS.published}, `${number(cell.published)} × published`));
  }
  if (ladder.devices > 1) parts.push(h("span", {class: "quiet"}, `by ${ladder.devices} devices`));
  const hover = `${best.label}: ${seconds(best.time[0])} (${seconds(best.time[1])}–${seconds(best.time[2])}), n = ${best.n}\n`
    + `${ladder.setting}\n${ladder.site}\nkey ${best.key}, commit ${DATA.runs[ladder.run].commit}`;
  return h("td", {"data-label": `${chip}, ${platform}`},
    h("button", {type: "button", class: "cell", title: hover, "data-ladder": at, "aria-haspopup": "dialog", click: open}, parts));
}

function archivalCell(row, device) {
  const figure = row.published[device];
  if (!figure) return h("td", {class: "none archival", "data-label": device}, "–");
  const title = `${figure.variant}; ${figure.source}${figure.note ? `; ${figure.note}` : ""}`;
  const share = figure.share === null ? null : h("span", {class: "reach", title: "of the bound that the datasheet gives (modelled)"}, bar(figure.share, "modelled"), percent(figure.share));
  return h("td", {class: "archival", "data-label": `${device} (published)`, title},
    h("span", {class: "value"}, rate(figure.value, figure.unit)), figure.setting ? h("small", {}, figure.setting) : null, share);
}

function chosenRows() {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  return DATA.rows.filter(row => {
    if (state.workload && row.workload !== state.workload) return false;
    if (state.precision && row.precision !== state.precision) return false;
    if (state.device !== "" && !shownIn(row, Number(state.device))) return false;
    const names = ladders(row).flatMap(of => of.cases.map(each => each.variant));
    const text = [row.workload, row.problem, row.title, row.precision, ...names].join(" ").toLowerCase();
    return words.every(word => text.includes(word));
  });
}

function matrix() {
  const columns = DATA.columns.map((_, at) => at).filter(at => state.device === "" || Number(state.device) === at);
  const archival = state.device === "" && ROOMY.matches ? DATA.archival : [];
  let rows = chosenRows();
  if (state.sort) rows = d3.sort(rows, row => d3.min(columns, at => facts(row, at)[state.sort]));
  const heads = columns.map(at => h("th", {scope: "col"}, DATA.columns[at].chip, h("br"), h("small", {}, DATA.columns[at].platform)));
  const old = archival.map(name => h("th", {scope: "col", class: "archival"}, name.replace(/^(AMD Radeon|NVIDIA GeForce|NVIDIA) (?!GPU)/, ""), h("br"), h("small", {}, "published")));
  const body = h("tbody");
  let workload = "";
  for (const row of rows) {
    if (!state.sort && row.workload !== workload) {
      workload = row.workload;
      const span = 1 + columns.length + archival.length;
      body.append(h("tr", {class: "group"}, h("th", {scope: "colgroup", colspan: span}, h("b", {}, workload), " ", DATA.workloads[workload])));
    }
    const name = h("th", {scope: "row"}, row.problem, row.precision === "fp32" ? "" : [" ", h("span", {class: "tag"}, row.precision)], h("small", {}, state.sort ? row.workload : row.title));
    body.append(h("tr", {}, name, columns.map(at => cellOf(row, at)), archival.map(device => archivalCell(row, device))));
  }
  if (!rows.length) body.append(h("tr", {}, h("td", {}, "Nothing of this kind was run; widen the filters.")));
  const caption = "Best variant of each problem on each device: its rate, its share of the bound, against the best peer. Click a cell for the whole story.";
  return h("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Matrix of problems and devices"},
    h("table", {class: "matrix"}, h("caption", {}, caption), h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Problem"), heads, old)), body));
}

/** Words and signs of the first screen. */
function legend() {
  return h("div", {class: "legend"},
    h("span", {}, bar(0.6), " ", term("share", "share of the bound")),
    h("span", {}, verdict("faster", "faster"), verdict("same", "same"), verdict("slower", "slower"), verdict("ambiguous", "cannot be told"), " than the best ", term("peer")),
    h("span", {}, h("abbr", {class: "mark", title: MARKS["§"]}, "§"), " noisy"),
    h("span", {}, h("abbr", {class: "mark", title: MARKS["◊"]}, "◊"), " code changed since"),
    h("span", {}, h("abbr", {class: "mark", title: MARKS["○"]}, "○"), " not the headline size"),
    h("span", {}, h("abbr", {class: "mark", title: MARKS["¤"]}, "¤"), " one that took less time was contended"),
    h("span", {}, h("abbr", {class: "mark", title: MARKS["†"]}, "†"), " above the bound"),
    h("span", {}, "variants: ", term("rung"), ", ", term("beyond"), ", ", term("control")),
    h("span", {}, term("published"), " figures are others', the rest is measured"));
}

function overview() {
  return [filters(), legend(), matrix(), DATA.leftOut ? h("p", {class: "quiet"}, `${DATA.leftOut} cases at smaller settings are not in this page; perfport table has all.`) : null];
}
