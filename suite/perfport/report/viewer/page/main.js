// The frame of the page: its pages, and what happens when the address changes.

const PAGES = [
  ["overview", "Overview", overview], ["pays", "Where work pays", pays], ["claims", "Claims", claims],
  ["portability", "Portability", portability], ["modelled", "Modelled", modelled], ["tuning", "Cross-tuning", tuning], ["ceilings", "Ceilings", ceilings],
  ["failures", "Failures", failures], ["history", "History", nights], ["runs", "Runs", runs],
];

function top() {
  const links = PAGES.map(([name, title]) => h("a", {href: address({...PLAIN, tab: name}), "aria-current": state.tab === name ? "page" : null}, title));
  return [h("h1", {}, DATA.title), h("p", {class: "quiet"}, `${DATA.cases} cases, ${DATA.measured} of them measured, in ${DATA.devices} places (a device behind a runtime on a host), ${Object.keys(DATA.workloads).length} workloads, ${DATA.claims.length} published claims. Brackets are 95 % intervals.`),
    h("nav", {"aria-label": "Pages"}, links)];
}

function draw(before) {
  const main = document.getElementById("main"), focused = document.activeElement;
  const label = focused?.closest?.("label")?.textContent, isSearch = focused?.type === "search", at = focused?.selectionStart;
  const shown = ({open, case: _, by, ...rest}) => JSON.stringify(rest);
  const first = !main.dataset.drawn;
  if (first || shown(before) !== shown(state)) {
    main.dataset.drawn = "yes";
    document.getElementById("top").replaceChildren(...top());
    const page = PAGES.find(([name]) => name === state.tab) || PAGES[0];
    main.replaceChildren(...page[2]().flat(Infinity).filter(Boolean));
    if (before.tab !== state.tab && !first) scrollTo(0, 0);
    if (isSearch) {
      const search = main.querySelector("input[type=search]");
      search?.focus();
      search?.setSelectionRange(at, at);
    } else if (label) {
      [...main.querySelectorAll("label")].find(of => of.firstChild.textContent === label.slice(0, of.firstChild.textContent.length))?.querySelector("select")?.focus();
    }
  }
  if (first || before.open !== state.open || before.case !== state.case || before.by !== state.by) updateDrawer(before);
}

listeners.push(draw);
ROOMY.addEventListener("change", () => {
  delete document.getElementById("main").dataset.drawn;
  update();
});
addEventListener("popstate", update);
addEventListener("hashchange", update);
state = {...PLAIN};
update();
