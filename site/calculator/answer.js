// What the calculator shows of an answer. A part of it that takes longer is a row of `SECTIONS`: a
// function of dpnotes.calculator that is asked about the run, and what shows its value.
globalThis.dpnAnswer = (() => {
  const SYMBOLS = {
    epsilon: "ε",
    delta: "δ",
    sigma: "σ",
    scale: "scale",
    each: "ε of each step",
    steps: "steps",
    rate: "rate",
  };
  const box = document.querySelector(".calculator"),
    find = (name) => box.querySelector(`.calculator-${name}`);

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  const link = (row) =>
    element("a", { href: `${row.page}.html#${row.claim.toLowerCase()}` }, row.name);

  /** The answer itself. What stood there of another one is hidden, in its place, until it is new. */
  function show(found, where) {
    const itself = ["epsilon", "delta"].includes(found.name);
    const is = itself && !found.sharp ? "≤" : "=";
    find("number").textContent = `${SYMBOLS[found.name]} ${is} ${found.shown}`;
    const which = itself ? (found.sharp ? "It" : "This is an upper end: the number") : "ε then";
    find("origin").textContent =
      `Computed by dpnotes ${where}. ` +
      `${which} lies between ${found.shown_low} and ${found.shown_high}.`;
    find("call").querySelector("pre").textContent = found.call;
    find("remarks").replaceChildren(
      ...found.warnings.map((text) => element("li", { textContent: text })),
    );
    box.dataset.state = "answer";
  }

  function attack(_found, text) {
    find("attack").textContent = text;
  }

  function remark(_found, text) {
    if (text) find("remarks").append(element("li", { textContent: text }));
  }

  function theoremRow(row, best) {
    const name = element("td", {}, link(row));
    if (row.kind === "approximation")
      name.append(element("span", { className: "calculator-kind" }, "an approximation, no bound"));
    const times = best > 0 ? String(Number((row.epsilon / best).toPrecision(3))) : "";
    const cells = [row.shown, row.kind === "exact" ? "1" : times];
    return element(
      "tr",
      { className: row.kind },
      name,
      ...cells.map((text) => element("td", {}, text)),
    );
  }

  function theorems(found, rows) {
    const guess = (row) => row.kind === "approximation";
    const said = rows
      .filter((row) => row.epsilon !== null)
      .sort((a, b) => guess(a) - guess(b) || a.epsilon - b.epsilon);
    find("at").textContent = `δ = ${found.shown_delta}`;
    box
      .querySelector(".calculator-theorems tbody")
      .replaceChildren(...said.map((row) => theoremRow(row, rows[0].epsilon)));
    const silent = rows.filter((row) => row.epsilon === null);
    find("silent").hidden = !silent.length;
    box
      .querySelector(".calculator-silent ul")
      .replaceChildren(...silent.map((row) => element("li", {}, link(row), `: ${row.why}`)));
  }

  const sizeOf = (figure) => (figure.clientWidth < 450 ? "narrow" : "wide");

  function roc(_found, { fpr, tpr }) {
    const figure = find("roc");
    figure.innerHTML = globalThis.dpnChart.roc(fpr, tpr, sizeOf(figure));
  }

  function curve(found, lines) {
    const figure = find("curve");
    const named = { [found.sharp ? "exact" : "at most"]: lines.exact, "Rényi DP": lines.renyi };
    figure.innerHTML = globalThis.dpnChart.svg(lines.delta, named, found, sizeOf(figure));
  }

  const SECTIONS = [
    ["attack", attack],
    ["roc", roc],
    ["rows", theorems],
    ["curve", curve],
    ["substitution", remark],
  ];

  function showDetails(found, values) {
    for (const [name, put] of SECTIONS) put(found, values[name]);
    box.dataset.state = "all";
  }

  /** The answer to another question must not stand beside this one. */
  function withdraw(origin) {
    find("number").textContent = "–";
    find("origin").textContent = origin;
    box.dataset.state = "none";
  }

  return { SECTIONS, SYMBOLS, box, element, find, show, showDetails, withdraw };
})();
