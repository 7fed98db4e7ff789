// Numbers as people type them: 1e-5, 10^-5, 256/60000, 1%, 60_000. The package reads the same texts
// (dpnotes/calculator/typed.py); a test compares the two.
globalThis.dpnNumbers = (() => {
  const PLAIN = String.raw`[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:e[+-]?\d+)?`;
  const NUMBER = new RegExp(`^(${PLAIN})(?:/(${PLAIN}))?$`, "i");
  const SIGNS = "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹",
    PLAINER = "-+0123456789";
  const lower = (raised) => [...raised].map((sign) => PLAINER[SIGNS.indexOf(sign)]).join("");

  /** The same as Python writes it, if it is a number: no spaces, 1e-5 for 10^-5, 1/100 for 1%. */
  function tidied(text) {
    const tidy = text
      .replace(/[\s'’]/g, "")
      .replaceAll("−", "-")
      .replace(/10([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)/g, (_, power) => `10^${lower(power)}`)
      .replace(
        /(?:([\d.]+)[*x·×]|(?<![\d.]))10\^([+-]?\d+)/g,
        (_, times, power) => `${times ?? "1"}e${power}`,
      )
      .replace(/(?<![\d._])0+(?=\d)/g, "");
    return tidy.endsWith("%") && !tidy.includes("/") ? `${tidy.slice(0, -1)}/100` : tidy;
  }

  /** The number, or NaN. */
  function value(text) {
    const [, top, bottom = "1"] = NUMBER.exec(tidied(text)) ?? [];
    const [above, below] = [top, bottom].map((part) => Number(part?.replaceAll("_", "")));
    return below === 0 || !Number.isFinite(above / below) ? NaN : above / below;
  }

  /** What a number with a comma may stand for: the comma as a mark of thousands, or as a point. */
  function meanings(text) {
    const plain = text.replace(/\s/g, "");
    const found = /^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(plain) ? [plain.replaceAll(",", "")] : [];
    return /^\d+,\d+$/.test(plain) ? [...found, plain.replace(",", ".")] : found;
  }

  return { meanings, tidied, value };
})();
