// How a text of Markdown with formulas will look. KaTeX is loaded with the first preview.

import { make } from "./view.js";

const STATIC = new URL("../_static/katex/", import.meta.url);
const FORMULA = /\$\$([^$]+)\$\$|\$([^$]+)\$/g;

const katex = () =>
  globalThis.katex
    ? Promise.resolve()
    : new Promise((resolve, reject) => {
        const script = make("script", {
          src: new URL("katex.min.js", STATIC),
          onload: resolve,
          onerror: reject,
        });
        document.head.append(script);
      });

const macros = () => fetch(new URL("macros.json", STATIC)).then((answer) => answer.json());

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const inline = (text) =>
  text
    .replace(/`([^`]+)`/g, "<code>$1</code>")
    .replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>")
    .replace(/\*([^*]+)\*/g, "<em>$1</em>");

/** A paragraph, or a list where each line begins with a mark. */
function block(text) {
  const lines = text.split("\n");
  for (const [tag, mark] of [
    ["ul", /^\s*[-*+] /],
    ["ol", /^\s*\d+[.)] /],
  ]) {
    if (lines.every((line) => mark.test(line))) {
      const items = lines.map((line) => `<li>${inline(line.replace(mark, ""))}</li>`);
      return `<${tag}>${items.join("")}</${tag}>`;
    }
  }
  return `<p>${inline(text)}</p>`;
}

/** HTML of a text; `render(tex, display)` makes a formula. */
export function asHtml(text, render) {
  const formulas = [];
  const kept = text.replace(FORMULA, (_, display, within) => {
    formulas.push(render(display ?? within, display !== undefined));
    return `\ue000${formulas.length - 1}\ue001`;
  });
  const blocks = escaped(kept)
    .split(/\n\s*\n/)
    .filter((part) => part.trim());
  const made = blocks.map((part) => block(part.trim())).join("");
  return made.replace(/\ue000(\d+)\ue001/g, (_, number) => formulas[number]);
}

/** Show it in the box below the text; again, and it is gone. */
export async function preview(box, text) {
  if (box.dataset.state === "preview" && box.shownText === text) {
    box.dataset.state = "none";
    return box.replaceChildren();
  }
  const [names] = await Promise.all([macros(), katex()]);
  const render = (tex, display) =>
    globalThis.katex.renderToString(tex, {
      displayMode: display,
      macros: { ...names },
      throwOnError: false,
    });
  box.dataset.state = "preview";
  box.shownText = text;
  box.innerHTML = asHtml(text, render);
}
