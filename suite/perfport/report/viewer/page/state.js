// What is shown is what the address says: a link to a view is a copy of the address.

const DATA = JSON.parse(document.getElementById("data").textContent);
const PLAIN = {tab: "overview", device: "", workload: "", precision: "", size: "", role: "", q: "", sort: "", open: "", case: "", by: "time"};
let state = {...PLAIN};
const listeners = [];

function readAddress() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  state = {...PLAIN, ...Object.fromEntries(Object.entries(given).filter(([name]) => name in PLAIN))};
}

function address(changes = {}) {
  const next = {...state, ...changes};
  const kept = Object.entries(next).filter(([name, value]) => value !== PLAIN[name]);
  return `#${new URLSearchParams(kept)}`;
}

/** Change what is shown: a step of the browser's history, or none for every letter of a search. */
function show(changes, replace = false) {
  const to = address(changes);
  if (to === address()) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  update();
}

function update() {
  const before = state;
  readAddress();
  for (const listen of listeners) listen(before);
}


const TIMED = of => of.time !== undefined;
const RANKED = of => TIMED(of) && of.status === "ok";

/** The case that stands for a ladder: the best of the suite's variants, or the fastest of a role. */
function leading(ladder, role = "") {
  if (!role) return ladder.best === undefined ? null : ladder.cases[ladder.best];
  const ranked = ladder.cases.filter(of => RANKED(of) && of.role === role);
  return d3.least(ranked, of => of.time[0]) || null;
}

/** The ladders of a problem and precision class. */
function ladders(row) {
  return DATA.ladders.filter(of => of.workload === row.workload && of.problem === row.problem && of.precision === row.precision);
}

/** The library beside the best variant: the best of its precision class, or else of a less precise one. */
function rival(ladder, cell) {
  const {label, precision, ...less} = cell?.less || {};
  if (!ladder.versus) return cell?.less ? {name: `${label} (${precision})`, ...less} : null;
  const peer = ladder.cases[ladder.peer];
  return {name: peer.label, versus: ladder.versus, wall: ladder.wall, marks: peer.marks};
}
