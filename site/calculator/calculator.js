// The calculator: a form whose state is the address of the page. Its numbers, calls and remarks are
// those of dpnotes.calculator: for the usual runs they stand in the page, for all others the page's
// Python, which starts when the page is opened, is asked while one types.
{
  const { SECTIONS, box, find, show, showDetails, withdraw } = globalThis.dpnAnswer;
  const { NAMES, arrange, fields, filled, forPython, form, mechanism, read, refuse, take } =
    globalThis.dpnForm;
  const KNOWN = JSON.parse(find("known").textContent);
  const START = Object.fromEntries(NAMES.map((name) => [name, form.elements[name].value]));
  const PAUSE = 400; // ms without a new letter: then theorems and curve are asked for, too
  let python = null,
    asked = 0;

  // ------------------------------------------------------------------------------ the address

  function address() {
    const { question, mechanism: chosen } = form.elements;
    const words = new URLSearchParams({ question: question.value, mechanism: chosen.value });
    const shown = fields(question.value);
    for (const name of NAMES)
      if (shown.includes(name) && filled(name)) words.set(name, form.elements[name].value.trim());
    return `?${words.toString().replaceAll("%2F", "/")}`;
  }

  function follow() {
    const words = new URLSearchParams(location.search);
    for (const name of NAMES) {
      const input = form.elements[name],
        start = name === "delta" ? mechanism().delta : START[name],
        text = words.get(name) ?? start;
      if (input.tagName !== "SELECT" || [...input.options].some((option) => option.value === text))
        input.value = text;
    }
    take([words.has("batch") ? "batch" : "rate", words.has("epochs") ? "epochs" : "steps"]);
    usual = mechanism().delta;
    update();
  }

  function remember() {
    if (address() !== location.search) history.pushState(null, "", address() + location.hash);
  }

  // ------------------------------------------------------------------------------ the answer

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
      const { parts, epsilon, delta } = found,
        values = {};
      for (const [name] of SECTIONS) {
        if (late()) return;
        values[name] = await ask(name, { parts, epsilon, delta });
      }
      if (!late()) showDetails(found, values);
    } catch (error) {
      if (late()) return;
      withdraw("No answer.");
      refuse(error.python ? error.python.message : error.message);
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

  // ------------------------------------------------------------------------------ what is done when

  function update() {
    arrange();
    asked++; // what Python still works on is overtaken
    rest();
    const query = read();
    if (!query) return withdraw("No answer: a field that is marked needs another value.");
    const known = KNOWN[address()];
    if (known) {
      show(known, "when this site was built");
      showDetails(known, known);
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
  form.addEventListener("input", ({ target }) => {
    if (target.name === "ways") take(target.value.split(" "));
    update();
  });
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
  form.addEventListener("click", ({ target }) => {
    if (!target.matches(".calculator-wrong button")) return;
    const input = target.closest("[data-field]").querySelector("input");
    input.value = target.textContent;
    input.focus();
    update();
    remember();
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

  follow();
  findPython();
}
