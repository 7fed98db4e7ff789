// Draws an interactive figure from its numbers: looks up, scales to the screen, writes SVG. The
// build runs the same functions (render.mjs), so that the figure stands before any script has
// come.

globalThis.dpnSlider = (() => {
  const FALLBACK = ["#0068a5", "#c2450a", "#00795a", "#a24a86", "#806000", "#5f4bb6", "#5c6670"];
  const NAMED = {
    ink: "var(--dpn-ink, #1b1f24)",
    muted: "var(--dpn-muted, #5b6570)",
    grid: "var(--dpn-grid, #d5dae0)",
  };
  const SIZES = { wide: { width: 632, height: 316 }, narrow: { width: 358, height: 272 } };
  const LEFT = 50,
    RIGHT = 12,
    TOP = 30,
    BOTTOM = 44;
  const escaped = (text) =>
    String(text).replace(
      /[&<>"]/g,
      (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign],
    );
  const color = (name) => NAMED[name] || `var(--dpn-c${name}, ${FALLBACK[name]})`;
  const list = (value) => (Array.isArray(value) ? value : [value]);

  // The table entry that a reference such as "profile sigma" names; a number stands for itself.
  function pick(spec, reference, at) {
    if (typeof reference !== "string") return reference;
    const [name, ...by] = reference.split(" ");
    const control = spec.controls.find((one) => one.name === name);
    if (control) return control.values[at[name]];
    return by.reduce((part, control) => part[at[control]], spec.data[name]);
  }

  const says = (spec, at) =>
    spec.says.replace(/\{([^}]+)\}/g, (_, reference) => pick(spec, reference, at));

  const start = (spec) =>
    Object.fromEntries(spec.controls.map((control) => [control.name, control.start]));

  // All sentences share a box that is as high as the longest of them needs; as a shorter one may
  // have wider letters or break its lines worse, a word is added.
  function longest(spec) {
    let best = "";
    const visit = (depth, at) => {
      if (depth < spec.controls.length) {
        const { name, values } = spec.controls[depth];
        values.forEach((_, i) => visit(depth + 1, { ...at, [name]: i }));
      } else {
        const text = says(spec, at);
        if (text.length > best.length) best = text;
      }
    };
    visit(0, {});
    return `${best} 000000000000`;
  }

  // From a value to a place between 0 and `room`.
  function scale(axis, room) {
    const place = axis.log ? Math.log10 : (value) => value;
    const low = place(axis.low),
      high = place(axis.high);
    return (value) =>
      value === null || (axis.log && value <= 0)
        ? NaN
        : (room * (place(value) - low)) / (high - low);
  }

  const path = (points) => {
    let pen = "M";
    return points
      .map(([x, y]) => {
        if (Number.isNaN(x + y)) {
          pen = "M";
          return "";
        }
        const step = `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
        pen = "L";
        return step;
      })
      .join("");
  };

  const segment = (x, y, toX, toY) =>
    path([
      [x, y],
      [toX, toY],
    ]);

  const stroke = (mark, otherwise = 1.8) =>
    `style="fill: none; stroke: ${color(mark.color ?? "ink")};` +
    ` stroke-width: ${mark.width ?? otherwise}` +
    `${mark.dash ? `; stroke-dasharray: ${mark.dash}` : ""}"`;

  // One function a kind of mark; X and Y lead to places in the panel, get looks up.
  const MARKS = {
    line(mark, X, Y, get) {
      const y = list(get(mark.y));
      const points = list(get(mark.x)).map((x, i) => [X(x), Y(y[i])]);
      return `<path d="${path(points)}" ${stroke(mark)}/>`;
    },
    area(mark, X, Y, get) {
      const xs = list(get(mark.x)),
        low = get(mark.low),
        high = get(mark.high);
      const at = (edge, i) => Y(Array.isArray(edge) ? edge[i] : edge);
      const floor = xs.map((x, i) => [X(x), at(low, i)]);
      const roof = xs.map((x, i) => [X(x), Math.min(at(high, i), at(low, i))]);
      const fill = `fill: ${color(mark.color)}; fill-opacity: ${mark.opacity ?? 0.35}`;
      return `<path d="${path([...floor, ...roof.reverse()])}Z" style="${fill}; stroke: none"/>`;
    },
    dots(mark, X, Y, get, width, height) {
      const within = ([x, y]) => x > -1 && x < width + 1 && y > -1 && y < height + 1;
      const y = list(get(mark.y)),
        fill = `fill: ${color(mark.color)}; fill-opacity: ${mark.opacity ?? 1}`,
        look = `style="${fill}; stroke: none"`;
      return list(get(mark.x))
        .map((x, i) => [X(x), Y(y[i])])
        .filter(within)
        .map(
          ([x, y]) =>
            `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${mark.size ?? 4.5}" ${look}/>`,
        )
        .join("");
    },
    stems(mark, X, Y, get) {
      const y = list(get(mark.y));
      return list(get(mark.x))
        .map((x, i) => `<path d="${segment(X(x), Y(0), X(x), Y(y[i]))}" ${stroke(mark)}/>`)
        .join("");
    },
    rule(mark, X, Y, get, width, height) {
      const across = "x" in mark,
        place = across ? X(get(mark.x)) : Y(get(mark.y));
      const line = across ? segment(place, 0, place, height) : segment(0, place, width, place);
      return `<path d="${line}" ${stroke(mark, 1.2)}/>`;
    },
    note(mark, X, Y, get) {
      const [x, y] = [X(get(mark.x)), Y(get(mark.y))];
      return Number.isNaN(x + y)
        ? ""
        : text(x, y, mark.text, mark.anchor ?? "start", mark.color ?? "ink");
    },
  };

  function text(x, y, words, anchor, ink = "ink", size = 12) {
    const font = `font: ${size}px var(--dpn-sans, sans-serif); text-anchor: ${anchor}`;
    const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}"`;
    const look = `fill: ${color(ink)}; stroke: none; ${font}`;
    return `<text ${place} style="${look}">${escaped(words)}</text>`;
  }

  function panel(spec, { x, y, marks }, at, left, top, width, height) {
    const X = scale(x, width),
      up = scale(y, height),
      Y = (value) => height - up(value);
    const get = (reference) => pick(spec, reference, at);
    const drawn = (chosen) =>
      chosen.map((mark) => MARKS[mark.kind](mark, X, Y, get, width, height)).join("");
    const inside = drawn(marks.filter(({ kind }) => kind !== "dots"));
    // the frame cuts no dot in half
    const whole = drawn(marks.filter(({ kind }) => kind === "dots"));
    const thin = `style="stroke: ${color("grid")}; stroke-width: 0.7; fill: none"`;
    const frame = [
      ...y.ticks.map(
        ([value, name]) =>
          `<path d="M0 ${Y(value).toFixed(1)}H${width}" ${thin}/>` +
          text(-7, Y(value) + 4, name, "end"),
      ),
      ...x.ticks.map(
        ([value, name]) =>
          `<path d="M${X(value).toFixed(1)} 0V${height}" ${thin}/>` +
          text(X(value), height + 17, name, "middle"),
      ),
      `<path d="M0 0V${height}H${width}" style="stroke: ${color("muted")};` +
        ' stroke-width: 0.8; fill: none"/>',
      text(-LEFT + 6, -12, y.label, "start"),
      text(width, height + 36, x.label, "end"),
    ].join("");
    const look = `overflow: hidden; width: ${width}px; max-width: none`;
    const clipped = `<svg width="${width}" height="${height}" style="${look}">${inside}</svg>`;
    return `<g transform="translate(${left} ${top})">${frame}${clipped}${whole}</g>`;
  }

  // Side by side where there is room, one above the other on a phone.
  function frames(spec, size) {
    const { width, height } = SIZES[size],
      total = spec.panels.reduce((sum, { share }) => sum + share, 0);
    let left = 0;
    return spec.panels.map(({ share }, i) => {
      if (size === "narrow")
        return [LEFT, TOP + i * height, width - LEFT - RIGHT, height - TOP - BOTTOM];
      const room = Math.round((width * share) / total);
      left += room;
      return [left - room + LEFT, TOP, room - LEFT - RIGHT, height - TOP - BOTTOM];
    });
  }

  function box(spec, size) {
    const { width, height } = SIZES[size];
    return `0 0 ${width} ${size === "narrow" ? height * spec.panels.length : height}`;
  }

  const draw = (spec, at, size) =>
    spec.panels.map((one, i) => panel(spec, one, at, ...frames(spec, size)[i])).join("");

  return { SIZES, box, color, draw, longest, pick, says, start };
})();
