import { describe, expect, it } from "vitest";
import { RowHeights } from "./row_heights";

const offsets = (heights: RowHeights) => Array.from({ length: heights.count + 1 }, (_, index) => heights.offset(index));

describe("heights of rows", () => {
  it("are estimated by those that were measured", () => {
    const heights = new RowHeights(4, 100);
    expect(heights.offset(4)).toBe(400);
    expect(heights.measure([{ index: 1, height: 250 }, { index: 2, height: 50 }])).toBe(true);
    expect(offsets(heights)).toEqual([0, 150, 400, 450, 600]);
    expect(heights.measure([{ index: 1, height: 250 }])).toBe(false);
    expect(heights.measure([{ index: 1, height: 10 }])).toBe(true);
    expect(offsets(heights)).toEqual([0, 150, 160, 210, 360]);
  });

  it("are estimated alike once enough rows were measured", () => {
    const heights = new RowHeights(30, 100);
    heights.measure(Array.from({ length: 20 }, (_, index) => ({ index, height: 10 })));
    heights.measure([{ index: 20, height: 500 }]);
    expect([heights.height(20), heights.height(29)]).toEqual([500, 10]);
  });

  it("say which row lies where", () => {
    const heights = new RowHeights(3, 10);
    heights.measure([{ index: 0, height: 30 }, { index: 1, height: 10 }, { index: 2, height: 10 }]);
    expect([0, 29, 30, 39, 40, 999, -5].map((top) => heights.rowAt(top))).toEqual([0, 0, 1, 1, 2, 2, 0]);
  });

  it("hold for no row at all", () => {
    const heights = new RowHeights(0, 10);
    expect([heights.offset(0), heights.offset(3), heights.rowAt(50), heights.measure([{ index: 2, height: 9 }])]).toEqual([0, 0, 0, false]);
  });
});
