"""Takes the pictures that the documents show: the viewer's main pages and an HTML report, light, dark and on a phone.

Runs examples into a store of its own, opens `deemster view` on it in Chromium, and writes `docs/images/viewer-*.png`
and `docs/pictures/html-report-*.png`.

Usage: .venv/bin/python bench/viewer_screenshots.py [name ...]     (a page of the viewer, or `report`)
"""

import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from chromium import launch, viewer_process

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PICTURES = ROOT / "docs" / "pictures"
EXAMPLES = ROOT / "examples"

SHARES = {
    "prompt-v1": 0.5,
    "prompt-v2": 0.4,
    "prompt-v3": 0.15,
    "shorter-context": 0.45,
    "prompt-v4": 0.1,
    "new-model": 0.2,
}
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 400, "height": 800}


def deemster(*arguments):
    """Run the command line; a gate that fails is no error here."""
    subprocess.run([sys.executable, "-m", "deemster", *map(str, arguments)], check=False, capture_output=True)


def weakened(outputs, share, seed):
    """Saved outputs in which a share of the answers lost some words."""
    draw = random.Random(seed)
    return {
        name: " ".join(word for word in text.split() if draw.random() < 0.6) if draw.random() < share else text
        for name, text in outputs.items()
    }


def make_store(folder):
    """A store with runs of three examples; the quickstart several times, as if an application got better and worse."""
    store = folder / "runs.db"
    for name in ("agent", "rag"):
        suite = folder / name / "suite.yml"
        shutil.copytree(EXAMPLES / name, suite.parent)
        suite.write_text(f"keep_prompts: all\n{suite.read_text()}")
        deemster("run", suite, "--store", store, "--name", f"{name}-1")
    deemster("init", folder / "prompts", "--template", "prompts")
    deemster("run", folder / "prompts" / "suite.yml", "--store", store)
    essays = EXAMPLES / "essays"
    judges = ("--judge", "ada", "--judge", "bert", "--judge", "cleo", "--set", "calls=per_item", "--offline")
    deemster("grade", essays / "letters.yml", "--models", essays / "models.yml", *judges, "--store", store)
    golden = yaml.safe_load((EXAMPLES / "quickstart" / "golden.yml").read_text(encoding="utf-8"))
    right = {sample["id"]: sample["expected_output"] for sample in golden["samples"]}
    for seed, (label, share) in enumerate(SHARES.items()):
        outputs = folder / f"{label}.yml"
        outputs.write_text(yaml.safe_dump({"outputs": weakened(right, share, seed)}), encoding="utf-8")
        deemster("run", EXAMPLES / "quickstart" / "suite.yml", "--outputs", outputs, "--store", store, "--name", label)
    deemster("baseline", "prompt-v3", "--store", store)
    return store


def places(rows):
    """The pages to take, by name, as the part of the address behind the hash."""
    run = {row["label"]: row["id"] for row in rows}
    pair = f"{run['prompt-v3']},{run['shorter-context']}"
    return {
        "runs": "runs",
        "run": f"runs/{run['rag-1']}",
        "samples": f"runs/{run['rag-1']}/samples",
        "sample": f"runs/{run['rag-1']}/samples/8",
        "trajectory": f"runs/{run['agent-1']}/samples/0",
        "gate": f"runs/{run['agent-1']}/gate",
        "compare": f"compare?runs={pair}",
        "experiment": "experiments/latest?against=plain+%2F+small&sort=disagreement",
        "agreement": f"runs/{next(row['id'] for row in rows if row['kind'] == 'grading')}/agreement",
        "label": f"runs/{run['rag-1']}/label?metric=claim-faithfulness",
    }


def take(browser, address, wanted):
    """Take the pictures."""
    looks = {"light": ("light", WIDE), "dark": ("dark", WIDE), "phone": ("light", PHONE)}
    for look, (scheme, size) in looks.items():
        context = browser.new_context(color_scheme=scheme, viewport=size, reduced_motion="reduce", timezone_id="UTC")
        page = context.new_page()
        rows = page.request.get(f"{address}/api/runs").json()["runs"]
        for name, place in places(rows).items():
            if wanted and name not in wanted:
                continue
            page.goto("about:blank")
            page.goto(f"{address}/#/{place}")
            page.locator("main[aria-busy=false]").wait_for()
            # The ranking of an experiment is asked for after its rows.
            page.locator("main:not(:has([aria-busy=true]))").wait_for()
            page.screenshot(path=IMAGES / f"viewer-{name}-{look}.png", full_page=name != "samples")
        context.close()


def take_report(browser, store):
    """Take the pictures of the first screen of a report."""
    page_file = store.parent / "report.html"
    deemster("show", "rag-1", "--store", store, "--to", page_file)
    looks = {"light": ("light", 1000, 1180), "dark": ("dark", 1000, 1180), "400": ("light", 400, 1100)}
    for look, (scheme, width, height) in looks.items():
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
        page = context.new_page()
        page.goto(page_file.as_uri())
        page.screenshot(path=PICTURES / f"html-report-{look}.png")
        context.close()


def main(wanted):
    """Make the store, start the viewer, take the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = make_store(Path(folder))
        with viewer_process(store, "--annotator", "ada") as address:
            browser = launch(playwright)
            take(browser, address, wanted)
            if not wanted or "report" in wanted:
                take_report(browser, store)
            browser.close()


if __name__ == "__main__":
    main(set(sys.argv[1:]))
