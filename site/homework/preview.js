// How a text will look to those who mark it: the same rules of Markdown and of formulas between
// dollar signs as on their pages (assignments/grader/rendering.py). All that is needed is loaded
// with the first preview.

import { make } from "../_run/editor.js";

const STATIC = new URL("../_static/katex/", import.meta.url);
const RULES = { double_inline: true };
const PRICE = /(?<![\\$])\$(?=\d[^$\n]* \$\d)/g; // costs $5, not $6
const MISSING =
  "What typesets formulas could not be loaded: they stand here as TeX. Without network, try later.";
const BARE = "TeX outside of dollar signs stays as it is: put $$ before \\begin and after \\end.";
const CHANGED = "The text has changed since: press Preview again.";

const script = (address, name) =>
  globalThis[name]
    ? Promise.resolve()
    : new Promise((resolve, reject) => {
        const added = make("script", {
          src: address,
          onload: resolve,
          onerror: () => {
            added.remove();
            reject(new Error(`${address} could not be loaded`));
          },
        });
        document.head.append(added);
      });

async function reader() {
  const [{ dollarmathPlugin }] = await Promise.all([
    import("./dollarmath.js"),
    script(new URL("markdown-it.js", import.meta.url), "markdownit"),
  ]);
  const made = globalThis.markdownit({ html: false }).use(dollarmathPlugin, RULES);
  return made.disable(["image", "link", "autolink"]);
}

async function typesetter() {
  const [macros] = await Promise.all([
    fetch(new URL("macros.json", STATIC)).then((answer) => answer.json()),
    script(new URL("katex.min.js", STATIC), "katex"),
  ]);
  return (formula) =>
    globalThis.katex.render(formula.textContent, formula, {
      displayMode: formula.matches(".block"),
      macros: { ...macros },
      throwOnError: false,
    });
}

function hasBareTeX(shown) {
  const rest = shown.cloneNode(true);
  for (const one of rest.querySelectorAll(".math, code")) one.remove();
  return rest.textContent.includes("\\begin{");
}

const line = (text) => make("p", { className: "hw-small", textContent: text });

/** Show it in the box below the text; again, and it is gone. */
export async function preview(box, text) {
  if (box.dataset.state === "preview" && box.shownText === text) {
    box.dataset.state = "none";
    return box.replaceChildren();
  }
  let shown;
  try {
    shown = make("div", { innerHTML: (await reader()).render(text.replace(PRICE, "\\$$")) });
  } catch {
    box.dataset.state = "trouble";
    return box.replaceChildren(line("The preview could not be loaded. Your text is kept."));
  }
  for (const link of shown.querySelectorAll(".mathlabel")) link.remove();
  for (const one of shown.querySelectorAll("[id]")) one.removeAttribute("id");
  const remarks = hasBareTeX(shown) ? [line(BARE)] : [];
  const formulas = [...shown.querySelectorAll(".math")];
  if (formulas.length)
    await typesetter()
      .then((typeset) => formulas.forEach(typeset))
      .catch(() => remarks.push(line(MISSING)));
  box.dataset.state = "preview";
  box.shownText = text;
  box.replaceChildren(...remarks, ...shown.childNodes);
}

/** The text is another one now than the one that is shown. */
export function outdate(box, text) {
  if (box.dataset.state !== "preview") return;
  box.querySelector(".hw-changed")?.remove();
  if (text === box.shownText) return;
  box.prepend(make("p", { className: "hw-small hw-changed", textContent: CHANGED }));
}
