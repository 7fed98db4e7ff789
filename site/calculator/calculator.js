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
    find("theorems").hidden = true;
    find("curve").replaceChildren();
    find("call").querySelector("pre").textContent = "";
    remark({});
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

  function draw(deltas, lines, mark) {
    const figure = find("curve"),
      values = Object.values(lines)
        .flat()
        .filter((y) => y !== null && Number.isFinite(y));
    if (!values.length) return figure.replaceChildren();
    const width = Math.min(640, Math.max(300, figure.clientWidth || 640));
    const [height, left, right, top, bottom] = [300, 46, 14, 14, 46];
    const most =
      Math.max(
        ...values.filter((y) => y < 3 * Math.min(...values) + 20),
        mark?.epsilon ? 1.1 * mark.epsilon : 0,
      ) || 1;
    const x = (delta) => left + ((width - left - right) * (Math.log10(delta) + 12)) / 10;
    const y = (value) => height - bottom - ((height - top - bottom) * value) / (1.05 * most);
    const parts = [];
    const add = (...drawn) => parts.push(shape(...drawn));
    for (let n = -12; n <= -2; n += width < 450 ? 5 : 2) {
      add("line", { class: "grid", x1: x(10 ** n), x2: x(10 ** n), y1: top, y2: height - bottom });
      add("text", { x: x(10 ** n), y: height - bottom + 18, "text-anchor": "middle" }, `1e${n}`);
    }
    const step =
      [1, 2, 5, 10]
        .map((m) => m * 10 ** Math.floor(Math.log10(most / 4)))
        .find((size) => most / size <= 6) || most;
    for (let value = 0; value <= 1.05 * most; value += step) {
      add("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) });
      add(
        "text",
        { x: left - 6, y: y(value) + 4, "text-anchor": "end" },
        String(Number(value.toPrecision(3))),
      );
    }
    add("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "δ");
    add("text", { x: 12, y: top + 12 }, "ε");
    const names = { exact: "exact", bound: lines.exact ? "Rényi DP" : "at most, from the table" };
    const label = [];
    let row = 0;
    for (const [kind, series] of Object.entries(lines)) {
      const points = deltas
        .map((delta, n) => [delta, series[n]])
        .filter(([, e]) => e !== null && e <= 1.05 * most);
      add("polyline", {
        class: `line ${kind}`,
        points: points.map(([d, e]) => `${x(d).toFixed(1)},${y(e).toFixed(1)}`).join(" "),
      });
      const line = top + 14 + 18 * row++;
      add("line", { class: `line ${kind}`, x1: width - 190, x2: width - 160, y1: line, y2: line });
      add("text", { x: width - 154, y: line + 4 }, names[kind]);
      if (points.length)
        label.push(`${names[kind]}: from ${inWords(points[0])} down to ${inWords(points.at(-1))}`);
    }
    if (mark && mark.delta >= 1e-12 && mark.delta <= 1e-2 && mark.epsilon !== null)
      add("circle", { class: `mark ${mark.kind}`, cx: x(mark.delta), cy: y(mark.epsilon), r: 5 });
    const says = `ε against δ. ${label.join(". ")}`;
    const whole = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": says };
    figure.replaceChildren(shape("svg", whole, ...parts));
  }

  function shape(tag, attributes, ...inside) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
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
    form.elements.exact.disabled = true;
    if (location.protocol !== "file:") {
      const found = await import(new URL(box.dataset.python, location.href)).catch(() => null);
      if (found && (await found.available)) python = found;
    }
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
