// The curve of epsilon against delta, and the ROC curve of the best attacks, as SVG, drawn as the
// interactive figures are (sliders/draw.js).
globalThis.dpnChart = (() => {
  const LOOKS = [
    { color: 0, dash: "" },
    { color: 1, dash: "6 4" },
  ];
  const LOW = 1e-12,
    HIGH = 1e-2;
  const inWords = ([delta, epsilon]) => `${epsilon.toPrecision(3)} at δ = ${delta.toPrecision(1)}`;

  // from 0 to what is shown: up to the curve that is lower, and some more of the other one
  function heights(values, epsilon) {
    const least = Math.min(...values);
    const most = Math.max(...values.filter((y) => y < 3 * least + 20), 1.1 * (epsilon || 0)) || 1;
    const unit = 10 ** Math.floor(Math.log10(most / 4));
    const step = [1, 2, 5, 10].map((m) => m * unit).find((size) => most / size <= 6) || most;
    const high = 1.05 * most;
    const ticks = Array.from({ length: Math.floor(high / step) + 1 }, (_, n) => n * step);
    return { high, ticks: ticks.map((value) => [value, String(Number(value.toPrecision(3)))]) };
  }

  /** The picture of {name: epsilons at the deltas}, with a dot at (mark.delta, mark.epsilon). */
  function svg(deltas, lines, mark, size) {
    const known = (y) => y !== null && Number.isFinite(y);
    const values = Object.values(lines).flat().filter(known);
    if (!values.length) return "";
    const { high, ticks } = heights(values, mark.epsilon);
    const marks = [],
      words = [];
    for (const [n, [name, series]] of Object.entries(lines).entries()) {
      const look = { width: 2.2, ...LOOKS[n] };
      const points = deltas.map((delta, at) => [delta, series[at]]).filter(([, e]) => known(e));
      const [x, y] = [0, 1].map((part) => points.map((point) => point[part]));
      const text = `${look.dash ? "- -" : "—"} ${name}`;
      const place = { x: HIGH, y: high * (0.94 - 0.08 * n), anchor: "end" };
      marks.push({ kind: "line", x, y, ...look }, { kind: "note", text, ...place, ...look });
      if (points.length)
        words.push(`${name}: from ${inWords(points[0])} down to ${inWords(points.at(-1))}`);
    }
    if (mark.delta >= LOW && mark.delta <= HIGH && mark.epsilon !== null)
      marks.push({ kind: "dots", x: mark.delta, y: mark.epsilon, color: 0 });
    const powers = [-12, -10, -8, -6, -4, -2].map((n) => [10 ** n, `1e${n}`]);
    const x = { label: "δ", low: LOW, high: 2 * HIGH, log: true, ticks: powers };
    const y = { label: "ε", low: 0, high, ticks };
    return picture({ x, y, marks, share: 1 }, `ε against δ. ${words.join(". ")}`, size);
  }

  function picture(panel, label, size) {
    const { box, draw } = globalThis.dpnSlider,
      spec = { controls: [], panels: [panel] };
    const head = `<svg viewBox="${box(spec, size)}" role="img" aria-label="${label}">`;
    return `${head}${draw(spec, {}, size)}</svg>`;
  }

  /** The largest true positive rate at each false positive rate, the diagonal, a dot at 1 %. */
  function roc(fpr, tpr, size) {
    const percents = (rate) => `${Number((100 * rate).toPrecision(1))} %`;
    const low = fpr[0],
      at = fpr.findIndex((rate) => Math.abs(rate - 0.01) < 1e-9);
    const ticks = [1e-4, 1e-3, 0.01, 0.1, 1].map((rate) => [rate, percents(rate)]);
    const axis = (label) => ({ label, low, high: 1, log: true, ticks });
    const bound = { text: "— no attack finds more", x: 0.9, y: 0.0005, anchor: "end", color: 0 };
    const guess = { text: "- - guessing", x: 0.9, y: 0.0002, anchor: "end", color: "muted" };
    const marks = [
      { kind: "line", x: [low, 1], y: [low, 1], color: "muted", dash: "6 4" },
      { kind: "line", x: fpr, y: tpr, color: 0, width: 2.2 },
      { kind: "note", ...bound },
      { kind: "note", ...guess },
      { kind: "dots", x: fpr[at], y: tpr[at], color: 0 },
    ];
    const ends = [0, at].map(
      (n) => `about ${(100 * tpr[n]).toPrecision(3)} % at ${percents(fpr[n])}`,
    );
    const label = `What attacks find at most, against false alarms: ${ends.join(", ")}`;
    const x = { ...axis("false alarms"), high: 1.5 }; // room for the last tick
    return picture({ x, y: axis("found"), marks, share: 1 }, label, size);
  }

  return { roc, svg };
})();
