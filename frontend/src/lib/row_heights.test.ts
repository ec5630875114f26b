import { describe, expect, it } from "vitest";
import { RowHeights } from "./row_heights";

describe("heights of rows", () => {
  it("are estimated until they are measured", () => {
    const heights = new RowHeights(4, 100);
    expect(heights.offset(4)).toBe(400);
    expect(heights.measure(1, 250)).toBe(150);
    expect([0, 1, 2, 3, 4].map((index) => heights.offset(index))).toEqual([0, 100, 350, 450, 550]);
    expect(heights.measure(1, 250)).toBe(0);
  });

  it("say which row lies where", () => {
    const heights = new RowHeights(3, 10);
    heights.measure(0, 30);
    expect([0, 29, 30, 39, 40, 999, -5].map((top) => heights.rowAt(top))).toEqual([0, 0, 1, 1, 2, 2, 0]);
  });

  it("hold for no row at all", () => {
    const heights = new RowHeights(0, 10);
    expect([heights.offset(0), heights.offset(3), heights.rowAt(50), heights.measure(2, 9)]).toEqual([0, 0, 0, 0]);
  });
});
