"""The viewer in Chromium over a run of 100,000 samples: first rows, and the longest task while one scrolls and filters.

Makes the run by `deemster run` on saved outputs, opens its samples in headless Chromium, and prints milliseconds; then
the grid of an experiment of 20 variants with 10,000 samples. The promises: first rows within 1 s, and no task above
200 ms.

Usage: .venv/bin/python bench/viewer_browser.py [samples]
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from million import lines
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from chromium import launch, viewer_process

PROMISE_PAINT_MS, PROMISE_TASK_MS = 1000, 200
EXPORTED = 20_000
VARIANTS, VARIANT_SAMPLES = 20, 10_000
OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: "longtask", buffered: true });
"""
SCROLL = """
async () => {
  const grid = document.querySelector("[role=grid]");
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  let worst = 0;
  for (let step = 0; step < 240; step++) {
    const start = performance.now();
    grid.scrollTop = (grid.scrollHeight * ((step * 37) % 240)) / 240;
    grid.scrollLeft = (grid.scrollWidth * ((step * 13) % 50)) / 50;
    await frame();
    worst = Math.max(worst, performance.now() - start);
  }
  return worst;
}
"""


def stored_run(folder, count):
    """The id of a run of so many samples in a store in the folder, which is made once."""
    if (folder / "report.json").exists():
        return json.loads((folder / "report.json").read_bytes())["run"]["id"]
    with (folder / "golden.jsonl").open("w") as golden, (folder / "outputs.jsonl").open("w") as outputs:
        for sample, output in lines(count):
            golden.write(sample + "\n")
            outputs.write(output + "\n")
    suite = "name: many\ndataset: golden.jsonl\ntarget: { outputs: outputs.jsonl }\nmetrics: [exact-match, token-f1]\n"
    (folder / "suite.yml").write_text(suite)
    command = [sys.executable, "-m", "deemster", "run", folder / "suite.yml", "--quiet", "--store", folder / "runs.db"]
    subprocess.run([*command, "--to", folder / "report.json"], check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "report.json").read_bytes())["run"]["id"]


def longest_task(page):
    """The longest task since this was last asked, in milliseconds; tasks below 50 are not reported by browsers."""
    return page.evaluate("() => Math.max(0, ...(window.longTasks ?? []).splice(0))")


def measured(page, act):
    """Milliseconds until `act` is done, and its longest task."""
    longest_task(page)
    start = time.perf_counter()
    act()
    took = (time.perf_counter() - start) * 1000
    page.wait_for_timeout(100)
    return took, longest_task(page)


def figures(page, address, run, count):
    """What is measured: name, milliseconds, longest task."""
    matched = page.get_by_text(f"{count:,} samples", exact=True)

    def open_samples():
        page.goto(f"{address}/#/runs/{run}/samples")
        page.locator("#row-0 a").wait_for()

    def filter_by(query, wanted):
        page.evaluate(f"location.hash = '#/runs/{run}/samples{query}'")
        page.get_by_text(wanted, exact=True).wait_for()

    yield "first rows, cold server", *measured(page, open_samples)
    yield "first rows again", *measured(page, lambda: (page.goto("about:blank"), open_samples()))
    yield "scroll to 240 places", *measured(page, lambda: page.evaluate(SCROLL))
    failing = f"{len(range(0, count, 10)):,} of {count:,} samples"
    yield "filter: not passed", *measured(page, lambda: filter_by("?metric=exact-match&passed=no", failing))
    yield "sort by a metric", *measured(page, lambda: filter_by("?sort=token-f1", f"{count:,} samples"))
    found = sum("item 777" in f"item {number}?" for number in range(count))
    yield "search a text", *measured(page, lambda: filter_by("?text=item+777", f"{found:,} of {count:,} samples"))
    yield "clear the search", *measured(page, lambda: (filter_by("", f"{count:,} samples"), matched.wait_for()))


def opened_from_disk(page, count):
    """Milliseconds until an export of a run shows its first rows, and the longest task."""
    folder = run_folder(count)
    run = stored_run(folder, count)
    site = folder / "site"
    if not site.exists():
        command = [sys.executable, "-m", "deemster", "view", "--store", folder / "runs.db", "--export", site, run]
        subprocess.run([*command], check=True, stderr=subprocess.DEVNULL)

    def open_samples():
        page.goto(f"{(site / 'index.html').as_uri()}#/runs/{run}/samples")
        page.locator("#row-0 a").wait_for()

    return measured(page, open_samples)


def answer(variant, sample):
    """An output of some lines, which differs from variant to variant; every seventh is wrong."""
    right = (sample + variant) % 7 != 0
    opening = ("", "Thank you for writing to us.\n\n", "Dear customer,\n\n", "Hello! ")[variant % 4]
    body = "The parcel is at the desk. If nobody is at home, it is kept for a week at the corner shop. " * 4
    steps = "".join(f"- Step {step} of variant {variant}\n" for step in range(variant % 5))
    return f"{opening}{sample if right else sample + 1} is the number of your order.\n\n{body}\n{steps}"


def stored_experiment(folder):
    """Store an experiment in the folder, which is made once."""
    if (folder / "runs.db").exists():
        return
    with (folder / "golden.jsonl").open("w") as golden:
        for sample in range(VARIANT_SAMPLES):
            expected = f"{sample} is the number of your order."
            entry = {"id": f"s{sample:05}", "input": {"question": f"Order {sample}?"}, "expected_output": expected}
            golden.write(json.dumps(entry) + "\n")
    for variant in range(VARIANTS):
        with (folder / f"{variant}.jsonl").open("w") as outputs:
            for sample in range(VARIANT_SAMPLES):
                outputs.write(json.dumps({"id": f"s{sample:05}", "output": answer(variant, sample)}) + "\n")
    named = "".join(f"  variant {variant}: {{ outputs: {variant}.jsonl }}\n" for variant in range(VARIANTS))
    suite = "name: grid\ndataset: golden.jsonl\ntarget: { outputs: 0.jsonl }\nmetrics: [contains, token-f1]\n"
    (folder / "suite.yml").write_text(f"{suite}variants:\n{named}")
    command = [sys.executable, "-m", "deemster", "run", folder / "suite.yml", "--quiet", "--store", folder / "runs.db"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def grid_figures(page, address):
    """What is measured of the grid of an experiment: name, milliseconds, longest task."""
    total = f"{VARIANT_SAMPLES:,} samples"

    def open_grid():
        page.goto("about:blank")
        page.goto(f"{address}/#/experiments/latest?against=variant+0")
        page.locator("#cell-0-0 .text").wait_for()

    def ask(query, wanted):
        page.evaluate(f"location.hash = '#/experiments/latest{query}'")
        page.get_by_role("region", name="Outputs").get_by_text(wanted, exact=True).wait_for()
        page.locator(".outputs[aria-busy=false]").wait_for()

    yield "grid, cold server", *measured(page, open_grid)
    yield "its ranking", *measured(page, page.locator(".ranks").wait_for)
    yield "grid again", *measured(page, open_grid)
    page.locator(".ranks").wait_for()
    yield "scroll to 240 places", *measured(page, lambda: page.evaluate(SCROLL))
    yield "the most disputed first", *measured(page, lambda: ask("?sort=disagreement", total))
    wrong = len(range(0, VARIANT_SAMPLES, 7))
    found = f"{wrong:,} of {total}"
    yield "what one variant fails", *measured(page, lambda: ask("?failing=variant+0&metric=contains", found))


def run_folder(count):
    """The folder with the store of a run of so many samples; it is kept for the next time."""
    folder = Path(tempfile.gettempdir()) / f"deemster-bench-viewer-browser-{count}"
    folder.mkdir(exist_ok=True)
    return folder


def main(count):
    """Print the figures."""
    folder = run_folder(count)
    run = stored_run(folder, count)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(OBSERVE)
        with viewer_process(folder / "runs.db") as address:
            print(
                f"{count:,} samples; promises: {PROMISE_PAINT_MS} ms to first rows, no task above {PROMISE_TASK_MS} ms"
            )
            for what, took, task in figures(page, address, run, count):
                print(f"{what:26} {took:8.0f} ms   longest task {task:5.0f} ms")
            nodes = page.evaluate("() => document.querySelectorAll('*').length")
            print(f"{'DOM nodes':26} {nodes:8}")
        folder = run_folder(f"{VARIANTS}x{VARIANT_SAMPLES}")
        stored_experiment(folder)
        with viewer_process(folder / "runs.db") as address:
            print(f"{VARIANTS} variants with {VARIANT_SAMPLES:,} samples")
            for what, took, task in grid_figures(page, address):
                print(f"{what:26} {took:8.0f} ms   longest task {task:5.0f} ms")
            nodes = page.evaluate("() => document.querySelectorAll('*').length")
            print(f"{'DOM nodes':26} {nodes:8}")
        took, task = opened_from_disk(page, EXPORTED)
        print(f"{f'export of {EXPORTED:,}, from disk':26} {took:8.0f} ms   longest task {task:5.0f} ms")
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
