// Sliders come to life when they are about to be seen: the numbers are loaded, then every move of a
// slider redraws the picture and rewrites the sentence. Until then, and without script, both stand.

const dpnSliders = {
  waiting: {},

  // Called by the file of numbers, which is a script so that it also loads from a disk.
  give(name, spec) {
    (this.waiting[name] ?? []).forEach((figure) => this.wake(figure, spec));
    delete this.waiting[name];
  },

  wake(figure, spec) {
    const inputs = [...figure.querySelectorAll("input")];
    const sentence = figure.querySelector(".dpn-slider-says"),
      drawings = figure.querySelectorAll("figure > svg");
    const show = () => {
      const at = Object.fromEntries(inputs.map((input) => [input.name, Number(input.value)]));
      for (const svg of drawings) svg.innerHTML = dpnSlider.draw(spec, at, svg.dataset.size);
      for (const input of inputs) {
        const words = dpnSlider.pick(spec, input.name, at);
        input.setAttribute("aria-valuetext", words);
        input.previousElementSibling.lastElementChild.textContent = words;
      }
      sentence.firstElementChild.textContent = dpnSlider.says(spec, at);
    };
    figure.addEventListener("input", show);
    figure.dataset.awake = "";
    if (inputs.some((input) => input.value !== input.defaultValue)) show();
  },

  load(figure) {
    const { slider, source } = figure.dataset;
    if (this.waiting[slider]) return this.waiting[slider].push(figure);
    this.waiting[slider] = [figure];
    const script = document.createElement("script");
    script.src = source;
    script.onerror = () => figure.querySelector(".dpn-slider-controls").remove();
    document.head.append(script);
  },
};

{
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        dpnSliders.load(target);
      }
    },
    { rootMargin: "800px" },
  );
  document.querySelectorAll(".dpn-slider").forEach((figure) => near.observe(figure));
}
