// The kernel of a variant beside that of the rung before it.

function kernelsOf(ladder, variant) {
  return DATA.sources.variants[`${ladder.workload}/${ladder.problem}/${variant}`] || [];
}

/** The variants that a kernel may be set beside: the rung before it first. */
function bases(ladder, of) {
  const rungs = d3.sort(ladder.cases.filter(each => each.role === "rung" && each.rung < of.rung), each => -each.rung);
  const before = of.role === "rung" ? rungs : d3.sort(ladder.cases.filter(each => each.role === "rung"), each => -each.rung);
  return [...new Set(before.map(each => each.variant))].filter(name => name !== of.variant && kernelsOf(ladder, name).length);
}

function sourceOf(ladder, of) {
  const own = kernelsOf(ladder, of.variant);
  if (!own.length) return h("p", {class: "quiet"}, of.role === "peer" ? "Its kernels are a library's." : "Its kernel source is not in this page.");
  const holder = h("div");
  const others = bases(ladder, of);
  const kernels = name => ladder.cases.find(each => each.variant === name)?.kernels;
  const draw = base => holder.replaceChildren(sideBySide(text(own, of.kernels), base ? text(kernelsOf(ladder, base), kernels(base)) : "", base));
  const choice = others.length ? chooser("Beside", [["", "nothing"], ...others.map(name => [name, name])], others[0], draw) : null;
  return h("details", {toggle: event => event.target.open && !holder.childElementCount && draw(others[0] || "")},
    h("summary", {}, `Kernel source: ${own.map(name => name.split("/").pop()).join(", ")}`), choice, holder,
    h("p", {class: "quiet"}, "Files as they are now; ◊ marks results of older code."));
}

/** The kernels of a case out of their files: from each name to the brace that closes it; whole files if none is found. */
function text(files, kernels) {
  const whole = files.map(name => DATA.sources.files[name]).join("\n");
  const found = (kernels || []).map(name => kernelIn(whole, name)).filter(Boolean);
  return found.length ? found.join("\n\n") : whole;
}

function kernelIn(whole, name) {
  const at = whole.search(new RegExp(`^[^\\n]*\\b${name.replace(/\W/g, "\\$&")}\\s*\\(`, "m"));
  if (at < 0) return "";
  let depth = 0;
  for (let end = whole.indexOf("{", at); end >= 0 && end < whole.length; end++) {
    depth += (whole[end] === "{") - (whole[end] === "}");
    if (depth === 0) return whole.slice(at, end + 1);
  }
  return "";
}

function sideBySide(own, base, name) {
  const source = kind => h("pre", {class: `source ${kind}`, tabindex: "0", role: "region", "aria-label": base ? `Changes from ${name}` : "Kernel source"});
  if (!base || own === base) {
    const shown = source("");
    shown.append(own);
    return h("div", {}, base ? h("p", {}, `The same kernel text as ${name}: macros, tunables or host code differ.`) : null, shown);
  }
  const shown = source("diff");
  for (const part of Diff.diffLines(base, own)) {
    const lines = part.value.replace(/\n$/, "").split("\n");
    const folded = !part.added && !part.removed && lines.length > 12;
    const kept = folded ? [...lines.slice(0, 5), `⋯ ${lines.length - 10} equal lines ⋯`, ...lines.slice(-5)] : lines;
    const sign = part.added ? "+" : part.removed ? "-" : " ";
    shown.append(...kept.map(line => h("span", {class: part.added ? "added" : part.removed ? "removed" : ""}, `${sign} ${line}\n`)));
  }
  return shown;
}
