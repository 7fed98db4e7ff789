// Reading without network: registers the service worker and tells it what to keep.
const HOME = new URL("../", import.meta.url);
const saving = navigator.connection?.saveData;

const idle = window.requestIdleCallback || ((task) => setTimeout(task, 1000));
const ready = navigator.serviceWorker
  .register(new URL("sw.js", HOME))
  .then(() => navigator.serviceWorker.ready);

const pathOf = (url) =>
  decodeURIComponent(url.split(/[?#]/)[0].slice(HOME.href.length)) || "index.html";

/** Keep "shell", "book", "everything" or a list of paths; `onProgress`: {done, of, failed}. */
export async function keep(what, onProgress) {
  const { active } = await ready;
  const channel = new MessageChannel();
  if (onProgress) channel.port1.onmessage = ({ data }) => onProgress(data);
  active.postMessage({ keep: what }, [channel.port2]);
}

// This page, with what it has loaded before the service worker was there, and what search needs.
ready
  .then(() =>
    idle(() => {
      const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
      keep([location.href, ...loaded].filter((url) => url.startsWith(HOME.href)).map(pathOf));
      if (!saving) keep("shell");
    }),
  )
  .catch(() => {}); // a private window has no service worker: all is as before

// The button of the first page: the whole book with Python.
for (const button of document.querySelectorAll("button.keep-offline")) {
  ready.then(
    () => (button.hidden = false),
    () => {},
  );
  const says = button.nextElementSibling;
  button.addEventListener("click", () => {
    button.disabled = true;
    says.textContent = "Fetching …";
    keep("everything", ({ done, of, failed }) => {
      says.textContent =
        done < of
          ? `${done} of ${of} files`
          : failed
            ? `${failed} files could not be fetched: try again`
            : "The whole book is on this device.";
      if (done === of) button.disabled = false;
    });
  });
}
