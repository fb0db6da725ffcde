// The drawer: all that is known of one cell of the matrix.

let opener = null;

function rowOf(ladder) {
  return DATA.rows.find(row => row.workload === ladder.workload && row.problem === ladder.problem && row.precision === ladder.precision);
}

function answers(ladder, row) {
  const best = leading(ladder);
  if (!best) return h("p", {}, "No variant has a result that may be ranked here.");
  const cell = Object.values(row?.cells || {}).find(of => DATA.ladders[of.ladder] === ladder);
  const beside = rival(ladder, cell);
  const lines = [
    h("li", {}, h("b", {}, `${best.label}: ${rate(best.metric, ladder.unit)}`), ` in ${seconds(best.time[0])} `, marked(ladder.marks)),
    best.share ? h("li", {}, bar(best.share[0]), ` ${percent(best.share[0])} of the `, term("bound"), `, ${number(best.perfect?.[0])} × is left to a perfect kernel`) : null,
    h("li", {}, beside ? [verdict(beside.versus[3], `${times(beside.versus)} `), "over the best ", term("peer"), `, ${beside.name}`] : ladder.peerless),
    cell?.published ? h("li", {}, `${number(cell.published)} × the best `, term("published"), " figure") : null,
    h("li", {}, binding(best)), best.next ? h("li", {}, h("b", {}, "Next: "), best.next) : null,
  ];
  return h("ul", {class: "answers"}, lines);
}

/** The same problem elsewhere: devices, settings and precision classes. */
function elsewhere(ladder) {
  const same = DATA.ladders.filter(of => of.workload === ladder.workload && of.problem === ladder.problem);
  const name = of => `${of.site}; ${of.preset || of.setting}${of.precision === "fp32" ? "" : `; ${of.precision}`}${leading(of) ? "" : " (no result)"}`;
  const long = of => same.filter(each => name(each) === name(of)).length > 1 ? `${name(of)}; ${settings(of.parameters)}` : name(of);
  return chooser("Device and setting", same.map(of => [DATA.ladders.indexOf(of), long(of)]), DATA.ladders.indexOf(ladder), open => show({open, case: ""}));
}

function drawer() {
  const ladder = DATA.ladders[state.open];
  if (!ladder) return null;
  const row = rowOf(ladder);
  const title = h("h2", {id: "drawer-title", tabindex: "-1"}, row?.title || ladder.problem, " ", h("small", {}, `${ladder.workload}/${ladder.problem}`));
  const close = h("button", {type: "button", class: "close", "aria-label": "Close", click: () => show({open: "", case: ""})}, "×");
  return h("div", {id: "drawer", role: "dialog", "aria-modal": "true", "aria-labelledby": "drawer-title", keydown: keepFocus},
    h("div", {class: "bar-top"}, title, close),
    h("div", {class: "filters"}, elsewhere(ladder)),
    h("p", {class: "quiet"}, `${ladder.chip}, ${ladder.host}; ${ladder.setting}; ${ladder.precision}`),
    answers(ladder, row),
    section("Ladder", ladderTable(ladder)),
    section("Roofline", roofline(ladder, row || {cells: {}})),
    section("Curves", curves(ladder)));
}

/** Keep the keyboard within the drawer as long as it is open. */
function keepFocus(event) {
  if (event.key !== "Tab") return;
  const inside = [...event.currentTarget.querySelectorAll("button,select,summary,[tabindex='0']")].filter(of => of.offsetParent !== null);
  const first = inside[0], last = inside[inside.length - 1];
  if (event.shiftKey && document.activeElement === first) { last.focus(); event.preventDefault(); }
  else if (!event.shiftKey && document.activeElement === last) { first.focus(); event.preventDefault(); }
}

function updateDrawer(before) {
  const old = document.getElementById("drawer"), scrolled = old?.scrollTop || 0;
  const isNew = before.open !== state.open;
  if (state.open !== "" && before.open === "") opener = document.activeElement?.dataset.ladder;
  old?.remove();
  const made = state.open === "" ? null : drawer();
  document.body.classList.toggle("with-drawer", Boolean(made));
  for (const id of ["top", "main"]) document.getElementById(id).inert = Boolean(made);
  if (made) {
    document.body.append(made);
    if (isNew) document.getElementById("drawer-title").focus();
    else {
      made.scrollTop = scrolled;
      made.querySelector("[aria-expanded='true']")?.focus({preventScroll: true});
    }
  } else if (old && opener) {
    document.querySelector(`.cell[data-ladder="${Number(opener)}"]`)?.focus();
  }
}

addEventListener("keydown", event => {
  if (event.key === "Escape" && state.open !== "") show({open: "", case: ""});
});
