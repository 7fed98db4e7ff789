// The first answer, without Python: upper bounds from the table of moments that dpnotes computed at
// build (grid.js). log M is the logarithm of the moment of order alpha of one step's density ratio.
//
// Every answer is on the safe side, because chords of convex functions lie above them (exercises of
// the page): (M - 1)/rate^2 is convex in the rate, log M in 1/sigma^2 and in 1/scale, and M in the
// epsilon of a pure step. Moments multiply over the steps, and the improved conversion (claim
// A-rdp-to-dp) makes epsilon of them.
(() => {
  const tables = {};
  function table(mechanism) {
    const { mechanisms, orders, rates, scale, tables: raw } = globalThis.dpnotesGrid;
    const name = mechanisms[mechanism].table;
    if (!tables[name]) {
      const { noise, power, steps } = raw[name];
      let level = 0,
        at = 0;
      const value = () => Math.exp((level += steps[at++]) / scale);
      const strength = (x) => x ** power; // the axis along which the loss grows
      tables[name] = {
        orders,
        rates,
        strength,
        noisy: power < 0,
        at: noise.map(strength),
        noise,
        logs: noise.map(() =>
          rates.map(() => {
            level = 0;
            return orders.map(value);
          }),
        ),
      };
    }
    return tables[name];
  }

  const logAdd = (a, b) =>
    a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
  const logMixed = (a, b, v) =>
    v <= 0 ? a : v >= 1 ? b : logAdd(Math.log1p(-v) + a, Math.log(v) + b);
  const logExcess = (log) => (log > 30 ? log : Math.log(Math.expm1(log))); // log(M - 1)
  const share = (x, low, high) => Math.min(1, Math.max(0, (x - low) / (high - low)));

  // upper bounds of log M at all orders; null outside of the table
  function logMoments(mechanism, noise, rate) {
    const { at, rates, logs, orders, noisy, strength } = table(mechanism),
      x = strength(noise);
    const i = at.findIndex((node) => node >= x * (1 - 1e-12)),
      j = rates.findIndex((node) => node >= rate);
    if (i < 0 || j < 0 || !(rate > 0)) return null;
    const w = i > 0 ? share(x, at[i - 1], at[i]) : 1,
      v = j > 0 ? share(rate, rates[j - 1], rates[j]) : 1;
    function atRate(n, m) {
      const high = logs[i][m][n];
      if (w === 1) return high;
      const low = logs[i - 1][m][n];
      return noisy ? (1 - w) * low + w * high : logMixed(low, high, w);
    }
    // log((M - 1)/rate^2)
    const scaled = (n, m) => logExcess(atRate(n, m)) - 2 * Math.log(rates[m]);
    return orders.map((_, n) => {
      const mixed = v === 1 ? scaled(n, j) : logMixed(scaled(n, j - 1), scaled(n, j), v);
      return logAdd(0, mixed + 2 * Math.log(rate));
    });
  }

  // {mechanism, noise, rate, steps, delta} -> an epsilon that holds, or null
  function epsilon({ mechanism, noise, rate, steps, delta }) {
    const logs = logMoments(mechanism, noise, rate);
    if (!logs || !(delta > 0)) return null;
    const each = globalThis.dpnotesGrid.orders.map(
      (a, n) => (steps * logs[n] - Math.log(a * delta)) / (a - 1) + Math.log1p(-1 / a),
    );
    return Math.max(0, Math.min(...each));
  }

  function delta({ mechanism, noise, rate, steps, epsilon: target }) {
    const logs = logMoments(mechanism, noise, rate);
    if (!logs) return null;
    const each = globalThis.dpnotesGrid.orders.map(
      (a, n) => steps * logs[n] + (a - 1) * (Math.log1p(-1 / a) - target) - Math.log(a),
    );
    return Math.min(1, Math.exp(Math.min(...each)));
  }

  // the last point, going from the safe end, at which the target is still met; null if none is
  function edge(meets, safe, risky) {
    if (!meets(safe)) return null;
    if (meets(risky)) return risky;
    for (let n = 0; n < 60; n++) {
      const middle = Math.sqrt(safe * risky);
      if (meets(middle)) safe = middle;
      else risky = middle;
    }
    return safe;
  }

  // the noise, the steps or the rate at which the target {epsilon, delta} is met for certain
  function calibrate(query) {
    const within = (field) => (x) => {
      const found = epsilon({ ...query, [field]: x });
      return found !== null && found <= query.epsilon;
    };
    if (query.question === "rate") return edge(within("rate"), 1e-9, 1);
    if (query.question === "steps") {
      const found = edge((k) => within("steps")(Math.floor(k)), 1, 1e12);
      return found && Math.floor(found);
    }
    const { noise, noisy } = table(query.mechanism),
      ends = [noise[0], noise[noise.length - 1]];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    return noisy ? edge(within("noise"), high, low) : edge(within("noise"), low, high);
  }

  function answer(query) {
    if (query.question === "epsilon") return epsilon(query);
    if (query.question === "delta") return delta(query);
    return calibrate(query);
  }

  globalThis.dpnotesTable = { answer, epsilon };
})();
