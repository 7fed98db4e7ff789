// The calculator: a form whose state is the address of the page. Its numbers, calls and remarks are
// those of dpnotes.calculator: for the usual runs they stand in the page, for all others the page's
// Python, which starts when the page is opened, is asked while one types.
(() => {
  const box = document.querySelector(".calculator");
  if (!box) return;
  const form = box.querySelector("form"),
    find = (name) => box.querySelector(`.calculator-${name}`);
  const KNOWN = JSON.parse(find("known").textContent);
  const NAMES = "question mechanism noise rate steps epsilon delta rows batch epochs".split(" ");
  const OPTIONAL = ["rows", "batch", "epochs"];
  const INSTEAD = { batch: "rate", epochs: "steps" };
  const START = Object.fromEntries(NAMES.map((name) => [name, form.elements[name].value]));
  const SYMBOLS = {
    epsilon: "ε",
    delta: "δ",
    sigma: "σ",
    scale: "scale",
    each: "ε of each step",
    steps: "steps",
    rate: "rate",
  };
  const RULES = {
    // [what is allowed, in words, as a test]
    noise: ["a number above 0", (x) => x > 0],
    rate: ["a number above 0 and at most 1", (x) => x > 0 && x <= 1],
    steps: ["a whole number from 1", (x) => x >= 1 && x === Math.floor(x)],
    epsilon: ["a number from 0", (x) => x >= 0],
    delta: ["a number from 0 and below 1", (x) => x >= 0 && x < 1],
    rows: ["a whole number from 1, or nothing", (x) => x >= 1 && x === Math.floor(x)],
    batch: ["a number from 1, or nothing", (x) => x >= 1],
    epochs: ["a number above 0, or nothing", (x) => x > 0],
  };
  const PAUSE = 400; // ms without a new letter: then theorems and curve are asked for, too
  let python = null,
    asked = 0;

  // ------------------------------------------------------------------------------ the form

  function number(text) {
    const parts = text.trim().replace(/[\s_]/g, "").split("/");
    if (
      parts.length > 2 ||
      parts.some((part) => !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part))
    )
      return NaN;
    return parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : Number(parts[0]);
  }

  const filled = (name) => form.elements[name].value.trim() !== "";
  const mechanism = () => form.elements.mechanism.selectedOptions[0].dataset;

  // which fields the question needs: not its own, and not what batch and epochs stand for
  function fields(question) {
    const fixed = NAMES.slice(2).filter((name) => ![name, INSTEAD[name]].includes(question));
    const replaced = (name) => fixed.some((other) => INSTEAD[other] === name && filled(other));
    return fixed.filter((name) => !replaced(name));
  }

  function arrange() {
    const { question } = form.elements,
      shown = fields(question.value);
    for (const label of form.querySelectorAll("[data-field]"))
      label.hidden = !shown.includes(label.dataset.field);
    const { noisy, parameter } = mechanism();
    form.querySelector('[data-field="noise"] .calculator-name').textContent =
      noisy === "1" ? `${SYMBOLS[parameter]}, in units of the sensitivity` : SYMBOLS.each;
    const target = ["epsilon", "delta"].includes(question.value) ? "" : "target ";
    for (const name of ["epsilon", "delta"])
      form.querySelector(`[data-field="${name}"] .calculator-name`).textContent =
        target + SYMBOLS[name];
  }

  // the query, or null with the fields marked that are wrong
  function read() {
    const query = {
      question: form.elements.question.value,
      mechanism: form.elements.mechanism.value,
    };
    let wrong = false;
    for (const name of fields(query.question)) {
      const input = form.elements[name],
        value = number(input.value),
        [allowed, holds] = RULES[name];
      const empty = OPTIONAL.includes(name) && !filled(name),
        good = empty || holds(value);
      complain(input, good ? "" : `needs ${allowed}`);
      wrong ||= !good;
      if (good && !empty) query[name] = value;
    }
    find("fault").textContent = "";
    return wrong ? null : query;
  }

  // says beside a field what is wrong with it
  function complain(input, text) {
    const label = input.closest("label"),
      id = `calculator-wrong-${input.name}`;
    label.querySelector(".calculator-wrong")?.remove();
    input.setAttribute("aria-invalid", String(Boolean(text)));
    if (!text) return input.removeAttribute("aria-describedby");
    input.setAttribute("aria-describedby", id);
    label.append(
      element("span", { className: "calculator-wrong", id, textContent: text, role: "alert" }),
    );
  }

  // the answer to another question must not stand beside this one
  function withdraw(origin) {
    find("number").textContent = "–";
    find("origin").textContent = origin;
    find("more").hidden = true;
  }

  // the query as dpnotes.calculator reads it
  function forPython({ question, mechanism: name, noise, rate, steps, batch, epochs, ...more }) {
    const part = { mechanism: name, [mechanism().parameter]: noise, rate, steps, batch, epochs };
    const given = Object.entries(part).filter(([, value]) => value !== undefined);
    return { question, parts: [Object.fromEntries(given)], ...more };
  }

  // ------------------------------------------------------------------------------ the address

  function address() {
    const words = new URLSearchParams({
      question: form.elements.question.value,
      mechanism: form.elements.mechanism.value,
    });
    for (const name of fields(form.elements.question.value))
      if (filled(name)) words.set(name, form.elements[name].value.trim());
    return `?${words.toString().replaceAll("%2F", "/")}`;
  }

  function follow() {
    const words = new URLSearchParams(location.search);
    for (const name of NAMES) {
      const input = form.elements[name],
        start = name === "delta" ? mechanism().delta : START[name],
        value = words.get(name) ?? start;
      if (input.tagName !== "SELECT" || [...input.options].some((option) => option.value === value))
        input.value = value;
    }
    usual = mechanism().delta;
    update();
  }

  function remember() {
    if (address() !== location.search) history.pushState(null, "", address() + location.hash);
  }

  // ------------------------------------------------------------------------------ the answer

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
    find("more").hidden = false;
    find("details").hidden = true;
  }

  function showDetails(found, rows, lines) {
    theorems(found, rows);
    find("details").hidden = false;
    draw(
      lines.delta,
      { exact: lines.exact, bound: lines.renyi },
      { delta: found.delta, epsilon: found.epsilon },
    );
  }

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  const link = (row) =>
    element("a", { href: `${row.page}.html#${row.claim.toLowerCase()}` }, row.name);

  function theorems(found, rows) {
    const said = rows
      .filter((row) => row.epsilon !== null)
      .sort(
        (a, b) =>
          (a.kind === "approximation") - (b.kind === "approximation") || a.epsilon - b.epsilon,
      );
    const best = rows[0].epsilon;
    find("at").textContent = `δ = ${Number(found.delta.toPrecision(4))}`;
    find("theorems")
      .querySelector("tbody")
      .replaceChildren(
        ...said.map((row) => {
          const cell = element("td", {}, link(row));
          if (row.kind === "approximation")
            cell.append(
              element("span", { className: "calculator-kind" }, "an approximation, not a bound"),
            );
          const times = best > 0 ? (row.epsilon / best).toPrecision(3) : "";
          return element(
            "tr",
            { className: row.kind },
            cell,
            element("td", {}, row.shown),
            element("td", {}, row.kind === "exact" ? "1" : String(Number(times) || "")),
          );
        }),
      );
    const silent = rows.filter((row) => row.epsilon === null),
      folded = find("theorems").querySelector("details");
    folded.hidden = !silent.length;
    folded
      .querySelector("ul")
      .replaceChildren(...silent.map((row) => element("li", {}, link(row), `: ${row.why}`)));
  }

  // Asks Python; a later question overtakes an earlier one.
  async function compute(query) {
    const turn = ++asked,
      late = () => turn !== asked;
    const progress = (text) => late() || (find("progress").textContent = text);
    const ask = (name, given) => python.call(`dpnotes.calculator.${name}`, [given]);
    form.elements.stop.hidden = false;
    box.setAttribute("aria-busy", "true");
    try {
      await startPython(progress);
      if (late()) return;
      progress("computing …");
      const found = await ask("answer", forPython(query));
      if (late()) return;
      show(found, "in this page");
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      if (late()) return;
      const run = { parts: found.parts, delta: found.delta };
      const rows = await ask("rows", run);
      if (late()) return;
      const lines = await ask("curve", run);
      if (late()) return;
      showDetails(found, rows, lines);
    } catch (error) {
      if (late()) return;
      withdraw("No answer.");
      find("fault").textContent = error.python ? error.python.message : error.message;
    } finally {
      if (!late()) rest();
    }
  }

  async function startPython(progress) {
    progress("starting Python …");
    await python.start((text, fraction) =>
      progress(`${text} ${fraction >= 0 ? `${Math.round(100 * fraction)} %` : ""}`),
    );
    progress("");
  }

  // nothing is being computed
  function rest(text = "") {
    form.elements.stop.hidden = true;
    box.removeAttribute("aria-busy");
    find("progress").textContent = text;
  }

  // ------------------------------------------------------------------------------ the curve

  const inWords = ([delta, epsilon]) => `${epsilon.toPrecision(3)} at δ = ${delta.toPrecision(1)}`;

  // as the interactive figures are drawn (site/sliders/draw.js)
  function draw(deltas, lines, mark) {
    const figure = find("curve"),
      values = Object.values(lines)
        .flat()
        .filter((y) => y !== null && Number.isFinite(y));
    if (!values.length) return figure.replaceChildren();
    const most =
      Math.max(
        ...values.filter((y) => y < 3 * Math.min(...values) + 20),
        1.1 * (mark.epsilon || 0),
      ) || 1;
    const high = 1.05 * most;
    const step =
      [1, 2, 5, 10]
        .map((m) => m * 10 ** Math.floor(Math.log10(most / 4)))
        .find((size) => most / size <= 6) || most;
    const heights = Array.from({ length: Math.floor(high / step) + 1 }, (_, n) => n * step);
    const names = { exact: "the whole law", bound: "Rényi DP" };
    const colors = { exact: 0, bound: 1 };
    const marks = [],
      label = [];
    for (const [kind, series] of Object.entries(lines)) {
      const points = deltas
        .map((delta, n) => [delta, series[n]])
        .filter(([, e]) => e !== null && e <= high);
      const look = { width: 2.2, color: colors[kind], dash: kind === "bound" ? "6 4" : "" };
      const [x, y] = [0, 1].map((n) => points.map((point) => point[n]));
      const text = `${look.dash ? "- -" : "—"} ${names[kind]}`;
      const place = { x: 1e-2, y: high * (0.94 - 0.07 * label.length), anchor: "end" };
      marks.push({ kind: "line", x, y, ...look }, { kind: "note", text, ...place, ...look });
      if (points.length)
        label.push(`${names[kind]}: from ${inWords(points[0])} down to ${inWords(points.at(-1))}`);
    }
    if (mark.delta >= 1e-12 && mark.delta <= 1e-2 && mark.epsilon !== null)
      marks.push({ kind: "dots", x: mark.delta, y: mark.epsilon, color: colors.exact });
    const powers = [-12, -10, -8, -6, -4, -2].map((n) => [10 ** n, `1e${n}`]);
    const x = { label: "δ", low: 1e-12, high: 2e-2, log: true, ticks: powers };
    const ticks = heights.map((value) => [value, String(Number(value.toPrecision(3)))]);
    const spec = {
      controls: [],
      panels: [{ x, y: { label: "ε", low: 0, high, ticks }, marks, share: 1 }],
    };
    const size = figure.clientWidth < 450 ? "narrow" : "wide";
    const { box: room, draw: drawn } = globalThis.dpnSlider;
    figure.innerHTML =
      `<svg viewBox="${room(spec, size)}" role="img"` +
      ` aria-label="ε against δ. ${label.join(". ")}">${drawn(spec, {}, size)}</svg>`;
  }

  // ---- what is done when

  function update() {
    arrange();
    asked++; // what Python still works on is overtaken
    rest();
    const query = read();
    if (!query) return withdraw("No answer: a field that is marked needs another value.");
    const known = KNOWN[address()];
    if (known) {
      show(known, "when this site was built");
      showDetails(known, known.rows, known.curve);
    } else if (python) {
      if (python.state?.() !== "ready") withdraw("Python is starting; the answer comes then.");
      compute(query);
    } else withdraw("Only Python can tell.");
  }

  // the usual delta of a mechanism, unless somebody has chosen another
  let usual = START.delta;
  function chooseDelta() {
    const { delta } = form.elements;
    if (delta.value.trim() === usual) delta.value = mechanism().delta;
    usual = mechanism().delta;
  }

  async function copy(text, button) {
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const selection = getSelection();
      selection.selectAllChildren(find("call").querySelector("pre"));
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => (button.textContent = before), 1500);
  }

  form.elements.mechanism.addEventListener("input", chooseDelta);
  form.addEventListener("input", update);
  form.addEventListener("change", () => {
    if (read()) remember();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const query = read();
    if (!query) return;
    remember();
    if (python) compute(query);
  });
  form.elements.stop.addEventListener("click", async () => {
    asked++;
    rest("stopped");
    await python.stop();
  });
  form.elements.share.addEventListener("click", () =>
    copy(new URL(address(), location.href).href, form.elements.share),
  );
  form.elements.copy.addEventListener("click", () =>
    copy(find("call").querySelector("pre").textContent, form.elements.copy),
  );
  addEventListener("popstate", follow);
  addEventListener("pageshow", ({ persisted }) => persisted && update()); // its Python was ended

  find("usual").addEventListener("click", (event) => {
    if (!event.target.matches("a") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", event.target.getAttribute("href"));
    follow();
    form.scrollIntoView({ block: "nearest" });
  });

  async function findPython() {
    const found = await import(new URL(box.dataset.python, location.href)).catch(() => null);
    if (await found?.available) python = found;
    form.elements.compute.hidden = !python;
    find("off").hidden = Boolean(python);
    if (!python) {
      find("progress").textContent =
        "This copy of the book has no Python in its pages: other runs are answered in a shell.";
      return;
    }
    if (KNOWN[address()])
      startPython((text) => (find("progress").textContent = text)).catch((error) =>
        rest(error.message),
      );
    else update();
  }

  form.hidden = false;
  follow();
  findPython();
})();
