import { describe, expect, it } from "vitest";
import { fileOfKey } from "./exported_data";
import { formatCost, formatDifference, formatDollars, formatInterval, formatMilliseconds, formatNumber, formatPlural, formatRate, formatVisible } from "./format";

describe("numbers", () => {
  it("that are undefined are n/a, not 0", () => {
    expect([formatNumber(null), formatCost(undefined), formatDifference(null), formatMilliseconds(null)]).toEqual(["n/a", "n/a", "n/a", "n/a"]);
    expect(formatNumber(Number.NaN)).toBe("n/a");
    expect(formatInterval(null)).toBe("no interval");
  });

  it("are rounded half to even, as Python does", () => {
    expect([0.625, 0.375, 0.875, 0.615, 0.125, 0.995].map((value) => formatNumber(value))).toEqual(["0.62", "0.38", "0.88", "0.61", "0.12", "0.99"]);
    expect([formatNumber(0.0625, 3), formatNumber(2.5, 0), formatNumber(-0.625)]).toEqual(["0.062", "2", "-0.62"]);
  });

  it("that are shares have the decimals that their interval supports", () => {
    expect([formatRate(0.5, [0.32, 0.81]), formatRate(0.8166, [0.811, 0.823]), formatRate(0.5, null)]).toEqual(["0.50", "0.817", "0.50"]);
  });

  it("have a fixed number of decimals, and differences a sign", () => {
    expect(formatNumber(0.5)).toBe("0.50");
    expect([formatDifference(0.25), formatDifference(-0.25), formatDifference(-0.00001)]).toEqual(["+0.25", "−0.25", "0.00"]);
    expect(formatInterval([0.1, 0.25])).toBe("0.10 to 0.25");
    expect([formatPlural(1, "run"), formatPlural(1200, "run")]).toEqual(["1 run", "1,200 runs"]);
    expect([0, 0.4, 12.4, 1500, 600000].map(formatMilliseconds)).toEqual(["<1 ms", "<1 ms", "12 ms", "1.50 s", "10 min"]);
    expect([0, 0.0042, 0.05, 0.214, 12.3, null].map(formatDollars)).toEqual(["0.00", "0.0042", "0.05", "0.21", "12.30", "n/a"]);
  });
});

describe("text", () => {
  it("shows control and direction characters, and leaves all others", () => {
    expect(formatVisible("a\u202eb\u0000\u{e0041}")).toBe("a\\u202eb\\x00\\U000e0041");
    expect(formatVisible("<b>é</b>\n\tok 👍🏽")).toBe("<b>é</b>\n\tok 👍🏽");
  });
});

describe("fileOfKey", () => {
  it("encodes what file names cannot hold", () => {
    expect(fileOfKey("runs/2026-x/score-length/ndcg(gain=exponential)@10")).toBe("data/runs/2026-x/score-length/ndcg%28gain%3Dexponential%29%4010.js");
    expect(fileOfKey("compare/a,b/samples")).toBe("data/compare/a,b/samples.js");
  });
});
