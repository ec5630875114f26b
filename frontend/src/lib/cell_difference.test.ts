import { describe, expect, it } from "vitest";
import { cellDifference } from "./cell_difference";

describe("difference of two cells", () => {
  it("marks the words that differ", () => {
    const found = cellDifference("Refunds take five days.", "Refunds take two days.", 500);
    expect(found.kind).toBe("marked");
    expect(found.pieces.filter((piece) => piece.kind !== "same")).toEqual([
      { kind: "removed", text: "five" },
      { kind: "added", text: "two" },
    ]);
  });

  it("says that texts are the same, or have too little in common", () => {
    expect(cellDifference("Yes.", "Yes.", 500).kind).toBe("same");
    expect(cellDifference("Refunds take five days.", "I do not know", 500)).toEqual({ kind: "apart", pieces: [{ kind: "same", text: "I do not know" }] });
  });

  it("shows the rest of a long text as it is", () => {
    const found = cellDifference(`one ${"same ".repeat(50)}`, `two ${"same ".repeat(50)}`, 40);
    expect(found.pieces.filter((piece) => piece.kind !== "removed").map((piece) => piece.text).join("")).toBe(`two ${"same ".repeat(50)}`);
  });
});
