"""The pages' notebooks: executed side by side, and kept until something that they run is another.

A page whose cells are as they were is not executed again, if `dpnotes`, the installed packages and
Python are the same, too. A page that failed is never kept: each build executes it again.
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import time

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_client.manager import AsyncKernelManager
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

import kernels
from pages.notebook import is_executed, written_out
from surroundings import installed

FOLDER = ".jupyter_cache"
MOST = 100  # results of pages as they were a while ago


def state_of(*paths):
    """A hash of what stands in these files and folders, and in which file."""
    found = hashlib.sha256()
    for top in paths:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                data = path.read_bytes()
                found.update(f"{path.relative_to(top.parent)} {len(data)}\n".encode() + data)
    return found.hexdigest()


def made_with(root):
    """All that decides what a cell gives, but for the cells of its page."""
    runners = [root / "site" / name for name in ("notebooks.py", "kernels.py", "surroundings.py")]
    return f"{state_of(root / 'dpnotes', *runners)} {installed()}"


@contextlib.contextmanager
def kept(root, folder, anew=False):
    """Inside, pages are executed into `folder`, which keeps what was made with the same things.

    Whoever ends in between, or changes `dpnotes` meanwhile, begins with an empty folder again.
    """
    stamp, state = folder / "made-with", made_with(root)
    if anew or not stamp.exists() or stamp.read_text(encoding="utf-8") != state:
        shutil.rmtree(folder, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    cache = get_cache(folder)
    cache.change_cache_limit(MOST)
    yield cache
    if made_with(root) == state:
        stamp.write_text(state, encoding="utf-8")


def has_result(cache, notebook):
    """Is it there already?"""
    with contextlib.suppress(KeyError):
        return bool(cache.match_cache_notebook(notebook))
    return False


def execute_pages(paths, cache):
    """Execute the pages that have no result yet, one on each core; the build finds them there.

    Returns the error of each page that failed. It is not in the cache: Sphinx executes it again,
    and says where it stands.
    """
    os.environ["TQDM_DISABLE"] = "1"  # what a page prints must not depend on how long it took
    found = {
        path: read_myst_markdown_notebook(written_out(path.read_text(encoding="utf-8")))
        for path in sorted(filter(is_executed, paths), key=lambda path: -path.stat().st_size)
    }
    due = [(path, notebook) for path, notebook in found.items() if not has_result(cache, notebook)]
    print(f"{len(due)} of {len(found)} pages to execute", flush=True)

    async def execute_all():  # the longest page first
        cores = asyncio.Semaphore(os.cpu_count() or 1)
        return await asyncio.gather(*(execute_page(cache, *page, cores) for page in due))

    ends = asyncio.run(execute_all())
    return {path: error for (path, _), error in zip(due, ends, strict=True) if error}


async def execute_page(cache, path, notebook, cores):
    """Execute one page, as Sphinx will read it, when a core is free; returns its error, if any."""
    async with cores:
        manager = kernels.manager(AsyncKernelManager, kernel_name="python3")
        folder = {"metadata": {"path": str(path.parent)}}
        client = NotebookClient(
            notebook, km=manager, timeout=300, resources=folder, record_timing=False,
            coalesce_streams=True,  # however slowly they came
        )  # fmt: skip
        start = time.monotonic()
        try:
            await client.async_execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            return error
        finally:
            if client.kc:
                client.kc.stop_channels()
            await manager.shutdown_kernel(now=True)
    seconds = time.monotonic() - start
    print(f"executed in {seconds:.0f} s: {path.stem}", flush=True)
    bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def complete(folder, cache):
    """Write the executed notebooks, which the tests compare with a second run; returns the faults.

    Sphinx leaves them without the results that it found in the cache. Pages that say
    `execution_mode: off` (assignments) are taken out: they have nothing to compare.
    """
    faults = []
    for path in sorted(folder.rglob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if notebook.metadata.get("mystnb", {}).get("execution_mode") == "off":
            path.unlink()
            continue
        notebook = cache.merge_match_into_notebook(notebook)[1]
        nbformat.write(notebook, path)
        cells = [c for c in notebook.cells if c.cell_type == "code" and c.source]
        missed = [n for n, cell in enumerate(cells, 1) if cell.execution_count is None]
        if missed:
            faults.append(f"{path.name}: code cells {missed} were not executed")
    return faults
