// How people say it: words that carry nothing in a question, letters by their names, and German.

const words = (text) => text.trim().split(/\s+/);

export const STOP = new Set(
  words(`
  a about actually all am an and any are as at be been before being but by can could did do does
  doing done each else ever few for from get gets give given gives good got great had has have
  having here how i if in instead into is it its just kind let like look make makes many may me
  might more most much my need needed needs no not of off on one or our out over please
  possible put really same say says see set should so some something still such take tell than that
  the their them then there these they thing things this those to too try under up us use used
  useful uses using very want was way we well were what when where whether which while who whom why
  will with without would yet you your
  der die das den dem des ein eine einen einem einer und oder ist sind wie was wieviel viel ich man
  zu zum zur mit von vom für fur im auf hinzufugen kann soll muss welche welcher welches
`),
);

export const GREEK = new Map(
  Object.entries({
    α: "alpha",
    β: "beta",
    γ: "gamma",
    δ: "delta",
    ε: "epsilon",
    ϵ: "epsilon",
    η: "eta",
    θ: "theta",
    κ: "kappa",
    λ: "lambda",
    μ: "mu",
    ρ: "rho",
    σ: "sigma",
    τ: "tau",
    φ: "phi",
    χ: "chi",
    eps: "epsilon",
  }),
);

export const GERMAN = new Map(
  Object.entries({
    abfrage: "query",
    abschneiden: "clipping",
    anfrage: "query",
    anzahl: "count",
    aufgabe: "exercise",
    beweis: "proof",
    datenschutz: "privacy",
    differentiell: "differential",
    differentielle: "differential",
    empfindlichkeit: "sensitivity",
    exponentieller: "exponential",
    gauss: "gaussian",
    komposition: "composition",
    mechanismus: "mechanism",
    mechanismen: "mechanism",
    mittelwert: "mean average",
    nachbar: "neighbour",
    privatsphare: "privacy",
    rauschen: "noise",
    sensitivitat: "sensitivity",
    stichprobe: "sample",
    summe: "sum",
    unterabtastung: "subsampling",
    verlust: "loss",
    verteilung: "distribution",
    zahlen: "count",
  }),
);
