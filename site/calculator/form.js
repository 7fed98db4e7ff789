// The calculator's form: which fields there are for a question, what is read from them, and what is
// said beside one that cannot be read. Rate and steps, or batch and epochs, are two ways to say how
// often the data is used.
globalThis.dpnForm = (() => {
  const { SYMBOLS, box, element, find } = globalThis.dpnAnswer;
  const { meanings, tidied, value } = globalThis.dpnNumbers;
  const form = box.querySelector("form");
  const NAMES = "question mechanism noise rate steps epsilon delta rows batch epochs".split(" ");
  let ways = ["rate", "steps"]; // or batch and epochs
  const RULES = {
    // [what is allowed, in words, as a test]
    noise: ["a number above 0", (x) => x > 0],
    rate: ["a number above 0 and at most 1", (x) => x > 0 && x <= 1],
    steps: ["a whole number from 1 to 10^12", (x) => x >= 1 && x <= 1e12 && x === Math.floor(x)],
    epsilon: ["a number from 0", (x) => x >= 0],
    delta: ["a number from 0 and below 1", (x) => x >= 0 && x < 1],
    rows: ["a whole number from 1", (x) => x >= 1 && x === Math.floor(x)],
    batch: ["a number from 1", (x) => x >= 1],
    epochs: ["a number above 0", (x) => x > 0],
  };
  const WHOLES = "60000, 60_000 or 6e4",
    NUMBERS = "0.01, 1e-5, 10^-5, 1/100 or 1%";

  const filled = (name) => form.elements[name].value.trim() !== "";
  const mechanism = () => form.elements.mechanism.selectedOptions[0].dataset;
  const asked = () => form.elements.question.value;
  const needsPeople = () => fields(asked()).some((name) => name === "batch" || name === "epochs");

  // the fields that stand for a run and its target, but for what is asked
  function fields(question) {
    const [taken, repeated] = ways;
    const run = { rate: ["steps"], steps: [taken] }[question] ?? [taken, repeated];
    return ["noise", ...run, "epsilon", "delta", "rows"].filter((name) => name !== question);
  }

  function arrange() {
    const shown = fields(asked());
    for (const label of form.querySelectorAll("[data-field]"))
      label.hidden = !shown.includes(label.dataset.field);
    form.querySelector(".calculator-ways").hidden = asked() === "rate";
    for (const way of form.elements.ways) way.checked = way.value === ways.join(" ");
    const { noisy, parameter } = mechanism();
    const rename = (name, text) => {
      form.querySelector(`[data-field="${name}"] .calculator-name`).textContent = text;
    };
    rename(
      "noise",
      noisy === "1" ? `${SYMBOLS[parameter]}, in units of the sensitivity` : SYMBOLS.each,
    );
    rename("rows", `people in the data${needsPeople() ? "" : " (may be empty)"}`);
    const target = ["epsilon", "delta"].includes(asked()) ? "" : "target ";
    for (const name of ["epsilon", "delta"]) rename(name, target + SYMBOLS[name]);
  }

  // what a number with a comma may mean here
  const meant = (name) =>
    meanings(form.elements[name].value).filter((text) => RULES[name][1](value(text)));

  // what is wrong with a field, if something is
  function faultOf(name) {
    const text = form.elements[name].value,
      [allowed, holds] = RULES[name];
    if (name === "rows" && !filled(name) && !needsPeople()) return "";
    if (meant(name).length) return "Is this";
    if (text.includes(",") && !meanings(text).length) return "needs no comma.";
    if (holds(value(text))) return "";
    const isNumber = text.includes(",") || !Number.isNaN(value(text));
    const examples = allowed.includes("whole") ? WHOLES : NUMBERS;
    return `needs ${allowed}.${isNumber ? "" : ` It may be written as ${examples}.`}`;
  }

  // the query, or null with the fields marked that are wrong
  function read() {
    const query = { question: asked(), mechanism: form.elements.mechanism.value };
    let wrong = false;
    for (const name of fields(asked())) {
      const fault = faultOf(name);
      complain(form.elements[name], fault);
      wrong ||= fault !== "";
      if (filled(name)) query[name] = tidied(form.elements[name].value);
    }
    find("fault").textContent = "";
    return wrong ? null : query;
  }

  // says beside a field what is wrong with it; what a comma may mean can be chosen
  function complain(input, text) {
    const label = input.closest("[data-field]"),
      id = `calculator-wrong-${input.name}`;
    const before = label.querySelector(".calculator-wrong"),
      about = `${text} ${input.value}`;
    if (text && before?.dataset.about === about) return; // a button may be under a finger
    before?.remove();
    input.setAttribute("aria-invalid", String(Boolean(text)));
    if (!text) return input.removeAttribute("aria-describedby");
    input.setAttribute("aria-describedby", id);
    const choices = text === "Is this" ? meant(input.name) : [];
    const said = element("span", { className: "calculator-wrong", id, role: "alert" }, text);
    for (const [n, choice] of choices.entries()) {
      const button = element("button", { type: "button", textContent: choice });
      const end = n + 1 < choices.length ? " or" : "?";
      said.append(" ", element("span", {}, button, end));
    }
    said.dataset.about = about;
    label.append(said);
  }

  // what Python refuses is said beside the field that it names
  function refuse(message) {
    const [, word, rest] = /^(\w+)(?: of \w+)? (must .*)/s.exec(message) ?? [];
    const name = [word, word === mechanism().parameter ? "noise" : ""].find((one) =>
      fields(asked()).includes(one),
    );
    if (name) complain(form.elements[name], rest);
    else find("fault").textContent = message;
  }

  // the query as dpnotes.calculator reads it
  function forPython({ question, mechanism: name, noise, rate, steps, batch, epochs, ...more }) {
    const part = { mechanism: name, [mechanism().parameter]: noise, rate, steps, batch, epochs };
    const given = Object.entries(part).filter(([, text]) => text !== undefined);
    return { question, parts: [Object.fromEntries(given)], ...more };
  }

  const take = (names) => (ways = names);

  return {
    NAMES,
    arrange,
    asked,
    complain,
    fields,
    filled,
    forPython,
    form,
    mechanism,
    read,
    refuse,
    take,
  };
})();
