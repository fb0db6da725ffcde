// Elements from values: text is always text, never markup.

/** Make an element. Functions among the attributes listen to the event of that name; children are nodes or text. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

/** A word with its meaning: shown by hovering, by focus, and read aloud. */
function term(word, shown = word) {
  return h("span", {class: "term", tabindex: "0", title: WORDS[word]}, shown);
}

/** A choice among values: pairs of value and text. */
function chooser(label, options, chosen, change) {
  const items = options.map(([value, text]) => h("option", {value, selected: String(value) === String(chosen)}, text));
  return h("label", {class: "choice"}, h("span", {}, label), h("select", {change: event => change(event.target.value)}, items));
}

/** A share of a bound as a bar; its number stands beside it. */
function bar(share, kind = "") {
  const width = Math.min(Math.max(share, 0), 1) * 100;
  return h("span", {class: `bar ${kind}`, "aria-hidden": "true"}, h("span", {style: `width:${width.toFixed(1)}%`}));
}

/** Text that can be copied by a click. */
function command(text) {
  const button = h("button", {type: "button", class: "copy", click: () => {
    navigator.clipboard?.writeText(text);
    button.textContent = "copied";
  }}, "copy");
  return h("div", {class: "command"}, h("code", {}, text), button);
}

function section(title, ...children) {
  return h("section", {}, h("h3", {}, title), children);
}

/**
 * A table whose columns sort by a click on their heads, and whose rows are cards on narrow screens.
 * columns: {name, value: row => sort key, show: row => node or text, right: numbers, long: sentences, word: of the glossary}
 */
function sortable(caption, columns, rows, {sorted = null} = {}) {
  let [at, down] = sorted || [null, false];
  const body = h("tbody");
  const heads = columns.map((column, number) => {
    const button = h("button", {type: "button", title: WORDS[column.word] || "sort by this column", click: () => {
      down = at === number ? !down : Boolean(column.right);
      at = number;
      fill();
    }}, column.name);
    return h("th", {scope: "col", class: column.right ? "right" : ""}, column.value ? button : column.name);
  });
  function fill() {
    const ordered = at === null ? rows : d3.sort(rows, (a, b) => {
      const order = d3.ascending(columns[at].value(a), columns[at].value(b));
      return (down ? -order : order) || 0;
    });
    heads.forEach((head, number) => head.setAttribute("aria-sort", number === at ? (down ? "descending" : "ascending") : "none"));
    body.replaceChildren(...ordered.map(row => {
      const cells = columns.map(column => h("td", {class: column.right ? "right" : column.long ? "long" : "", "data-label": column.name}, column.show(row)));
      return h("tr", {}, cells);
    }));
  }
  fill();
  return h("div", {class: "wide", role: "region", "aria-label": caption, tabindex: "0"},
    h("table", {class: "cards"}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body));
}
