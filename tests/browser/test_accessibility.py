"""axe-core on every page, light and dark: no serious violation."""

from __future__ import annotations

import pytest

from tests.browser.test_pages import run_ids

pytestmark = pytest.mark.xdist_group("browser")

AUDIT = """
async (rules) => {
  const found = await axe.run(document, { resultTypes: ["violations"], runOnly: rules ?? undefined });
  const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  return serious.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}
"""


# What a page is made of does not depend on its colours.
@pytest.mark.parametrize(("scheme", "rules"), [("light", None), ("dark", ["color-contrast"])], ids=["light", "dark"])
def test_no_page_has_a_serious_violation(browser_thread, visit, ada, axe, scheme, rules):
    # The page's own policy refuses injected scripts; the auditor is not part of the page.
    page = visit(ada, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    ids = run_ids(page)
    run = ids["second"]
    pair = f"{ids['first']},{run}"
    label = {"run": ids["third"], "position": 4, "metric": "llm-as-judge", "verdict": "fail"}
    headers = {"Origin": ada, "Content-Type": "application/json"}
    assert page.request.post(f"{ada}/api/labels", data=label, headers=headers).ok
    row_hash = page.request.get(f"{ada}/api/runs/{run}/samples/4").json()["row_hash"]
    places = {
        "runs": "runs",
        "run": f"runs/{run}",
        "samples": f"runs/{run}/samples?passed=no",
        "sample": f"runs/{run}/samples/4",
        "gate": f"runs/{run}/gate",
        "agreement": f"runs/{ids['third']}/agreement",
        "label": f"runs/{ids['third']}/label",
        "comparison": f"compare?runs={pair}",
        "ranking": f"compare?runs={','.join(ids.values())}",
        "compared sample": f"compare/{row_hash}?runs={pair}",
    }
    found = {}
    for name, place in places.items():
        page.goto("about:blank")
        page.goto(f"{ada}/#/{place}")
        page.locator("main[aria-busy=false]").wait_for()
        page.evaluate(axe)
        if violations := page.evaluate(AUDIT, rules):
            found[name] = violations
    assert found == {}
