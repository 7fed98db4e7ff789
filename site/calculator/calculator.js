// The calculator: a form whose state is the address of the page. The first answer comes from the
// table (table.js) at once; "Compute exactly" starts the page's Python and asks dpnotes.calculator.
(() => {
  const box = document.querySelector(".calculator");
  if (!box) return;
  const form = box.querySelector("form"),
    find = (name) => box.querySelector(`.calculator-${name}`);
  const NAMES = ["question", "mechanism", "noise", "rate", "steps", "epsilon", "delta", "rows"];
  const START = Object.fromEntries(NAMES.map((name) => [name, form.elements[name].value]));
  const { mechanisms: MECHANISMS } = globalThis.dpnotesGrid;
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
    delta: ["a number above 0 and below 1", (x) => x > 0 && x < 1],
    rows: ["a whole number from 1, or nothing", (x) => x >= 1 && x === Math.floor(x)],
  };
  let python = null,
    started = false,
    asked = 0,
    soon = 0;

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

  // which fields the question needs: all but its own
  const fields = (question) => NAMES.slice(2).filter((name) => name !== question);

  function arrange() {
    const { question, mechanism } = form.elements,
      shown = fields(question.value);
    for (const label of form.querySelectorAll("[data-field]"))
      label.hidden = !shown.includes(label.dataset.field);
    const { noisy, parameter } = MECHANISMS[mechanism.value];
    form.querySelector('[data-field="noise"] .calculator-name').textContent = noisy
      ? `${SYMBOLS[parameter]}, in units of the sensitivity`
      : SYMBOLS.each;
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
      const empty = name === "rows" && !input.value.trim(),
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

  // the answer to another question must not stand beside a wrong one
  function withdraw() {
    find("number").textContent = "–";
    find("origin").textContent = "No answer: a field that is marked needs another value.";
    find("curve").replaceChildren();
  }

  // the query as dpnotes.calculator reads it
  function forPython({ question, mechanism, noise, rate, steps, ...more }) {
    const part = { mechanism, [MECHANISMS[mechanism].parameter]: noise, rate, steps };
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
      if (form.elements[name].value.trim()) words.set(name, form.elements[name].value.trim());
    return `?${words.toString().replaceAll("%2F", "/")}`;
  }

  function follow() {
    const words = new URLSearchParams(location.search);
    for (const name of NAMES) {
      const input = form.elements[name],
        value = words.get(name) ?? (name === "rows" && words.size ? "" : START[name]);
      if (input.tagName !== "SELECT" || [...input.options].some((option) => option.value === value))
        input.value = value;
    }
    update();
  }

  function remember() {
    if (address() !== location.search) history.pushState(null, "", address() + location.hash);
  }

  // ------------------------------------------------------------------------------ the first answer

  // to three digits, on the safe side
  function rounded(value, up) {
    if (value === 0) return "0";
    if (value >= 1000 && value === Math.floor(value)) return String(value);
    const shift = 10 ** (2 - Math.floor(Math.log10(Math.abs(value))));
    const whole = (up ? Math.ceil : Math.floor)(value * shift * (up ? 1 - 1e-12 : 1 + 1e-12));
    return Number((whole / shift).toPrecision(3)).toString();
  }

  function say(query) {
    const { noisy, parameter } = MECHANISMS[query.mechanism],
      found = globalThis.dpnotesTable.answer(query);
    if (found === null) return { number: "outside of the table", query: null };
    const [most, least] = [rounded(found, true), rounded(found, false)];
    const number = {
      epsilon: `ε ≤ ${most}`,
      delta: `δ ≤ ${most}`,
      steps: `${found} steps are safe`,
      rate: `rate ${least} is safe`,
      noise: noisy ? `${SYMBOLS[parameter]} = ${most} is enough` : `ε = ${least} a step is safe`,
    };
    return { number: number[query.question], query: { ...query, [query.question]: found } };
  }

  const ORIGIN =
    "Certain, but rounded to the safe side: from a table that dpnotes computed when this site was" +
    " built. The exact number is better.";

  function first(query) {
    const { number: text, query: run } = say(query);
    find("number").textContent = text;
    find("origin").textContent = run ? ORIGIN : "Only Python can tell: compute exactly.";
    find("theorems").hidden = true;
    find("call").querySelector("pre").textContent = call(query);
    remarks(query);
    const deltas = Array.from({ length: 31 }, (_, n) => 10 ** (-12 + n / 3));
    const bound = run
      ? deltas.map((delta) => globalThis.dpnotesTable.epsilon({ ...run, delta }))
      : [];
    draw(
      deltas,
      run ? { bound } : {},
      run && {
        delta: run.delta,
        epsilon: query.question === "delta" ? run.epsilon : globalThis.dpnotesTable.epsilon(run),
        kind: "bound",
      },
    );
  }

  // the lines that dpnotes.calculator.call would write
  function call(query) {
    const value = (name) => (query.question === name ? "x" : query[name]),
      inverse = !["epsilon", "delta"].includes(query.question);
    const sampled = query.question === "rate" || query.rate !== 1;
    let step = MECHANISMS[query.mechanism].call.replace("{}", value("noise"));
    if (sampled) step = `dp.subsample(${step}, rate=${value("rate")})`;
    const steps =
      query.question === "steps" || query.steps !== 1 ? `.compose(${value("steps")})` : "";
    const lines = inverse
      ? ["def family(x):", `    step = ${step}`, `    return step${steps}`, ""]
      : sampled && steps
        ? [`step = ${step}`, `run = step${steps}`]
        : [`run = ${step}${steps}`];
    const last = {
      epsilon: `run.epsilon(delta=${query.delta})`,
      delta: `run.delta(epsilon=${query.epsilon})`,
    };
    return [
      "import dpnotes as dp",
      "",
      ...lines,
      last[query.question] ||
        `dp.calibrate(family, epsilon=${query.epsilon}, delta=${query.delta})`,
    ].join("\n");
  }

  function remarks(query) {
    const sampled = query.question === "rate" || query.rate < 1,
      { noisy } = MECHANISMS[query.mechanism];
    const applies = {
      delta: query.rows === undefined && !(query.delta <= 1e-6),
      poisson: sampled,
      adjacency: sampled,
      sensitivity: noisy && !sampled,
      float: noisy,
    };
    remark(applies);
  }

  // shows those that apply, and what Python said
  function remark(applies, warnings = []) {
    const list = find("remarks");
    list.querySelectorAll(":not([data-remark])").forEach((item) => item.remove());
    for (const item of list.querySelectorAll("[data-remark]"))
      item.hidden = !applies[item.dataset.remark];
    list.append(...warnings.map((text) => element("li", {}, text)));
  }

  // ------------------------------------------------------------------------------ the exact answer

  function exact(found) {
    find("number").textContent = `${SYMBOLS[found.name]} = ${found.shown}`;
    const which = ["epsilon", "delta"].includes(found.name) ? "It" : "ε then";
    find("origin").textContent =
      "Exact, by dpnotes in this page." +
      ` ${which} lies between ${found.shown_low} and ${found.shown_high}.`;
    find("call").querySelector("pre").textContent = found.call;
    remark({}, found.warnings);
    theorems(found);
  }

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  const link = (row) =>
    element("a", { href: `${row.page}.html#${row.claim.toLowerCase()}` }, row.name);

  function theorems(found) {
    const said = found.rows
      .filter((row) => row.epsilon !== null)
      .sort(
        (a, b) =>
          (a.kind === "approximation") - (b.kind === "approximation") || a.epsilon - b.epsilon,
      );
    const best = found.rows[0].epsilon;
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
    const silent = found.rows.filter((row) => row.epsilon === null),
      folded = find("theorems").querySelector("details");
    folded.hidden = !silent.length;
    folded
      .querySelector("ul")
      .replaceChildren(...silent.map((row) => element("li", {}, link(row), `: ${row.why}`)));
    find("theorems").hidden = false;
  }

  // Asks Python; a later question overtakes an earlier one.
  async function compute(query) {
    const turn = ++asked;
    const progress = (text) => {
      if (turn === asked) find("progress").textContent = text;
    };
    form.elements.stop.hidden = false;
    box.setAttribute("aria-busy", "true");
    try {
      progress(started ? "computing …" : "starting Python …");
      await python.start((text, fraction) =>
        progress(`${text} ${fraction >= 0 ? `${Math.round(100 * fraction)} %` : ""}`),
      );
      started = true;
      if (turn !== asked) return;
      progress("computing …");
      const found = await python.call("dpnotes.calculator.answers", [forPython(query)]);
      if (turn !== asked) return;
      exact(found);
      progress("drawing …");
      const lines = await python.call("dpnotes.calculator.curve", [{ parts: found.parts }]);
      if (turn !== asked) return;
      draw(
        lines.delta,
        { exact: lines.exact, bound: lines.renyi },
        { delta: found.delta, epsilon: found.epsilon, kind: "exact" },
      );
    } catch (error) {
      if (turn !== asked) return;
      find("fault").textContent = error.python ? error.python.message : error.message;
      started = python.state ? python.state() === "ready" : false;
    } finally {
      if (turn === asked) rest();
    }
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
        mark?.epsilon ? 1.1 * mark.epsilon : 0,
      ) || 1;
    const high = 1.05 * most;
    const step =
      [1, 2, 5, 10]
        .map((m) => m * 10 ** Math.floor(Math.log10(most / 4)))
        .find((size) => most / size <= 6) || most;
    const heights = Array.from({ length: Math.floor(high / step) + 1 }, (_, n) => n * step);
    const names = { exact: "exact", bound: lines.exact ? "Rényi DP" : "at most, from the table" };
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
    if (mark && mark.delta >= 1e-12 && mark.delta <= 1e-2 && mark.epsilon !== null)
      marks.push({ kind: "dots", x: mark.delta, y: mark.epsilon, color: colors[mark.kind] });
    const powers = [-12, -10, -8, -6, -4, -2].map((n) => [10 ** n, `1e${n}`]);
    const x = { label: "δ", low: 1e-12, high: 1e-2, log: true, ticks: powers };
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
    clearTimeout(soon);
    const query = read();
    box.classList.toggle("calculator-withdrawn", !query);
    form.elements.exact.disabled = !python || !query;
    if (!query) return withdraw();
    first(query);
    if (started) soon = setTimeout(() => compute(query), 400);
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
    started = false;
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

  async function findPython() {
    const found = await import(new URL(box.dataset.python, location.href)).catch(() => null);
    if (await found?.available) python = found;
    form.elements.exact.disabled = !python || !read();
    if (!python)
      find("progress").textContent =
        "This copy of the book has no Python in its pages: ask in a shell.";
  }

  box.querySelector(".calculator-off").hidden = true;
  form.hidden = false;
  follow();
  findPython();
})();
