import { describe, expect, it } from "vitest";
import { isAlike, type Piece, splitWords, wordDiff } from "./word_diff";

const without = (pieces: Piece[], kind: Piece["kind"]) => pieces.filter((piece) => piece.kind !== kind).map((piece) => piece.text).join("");

describe("wordDiff", () => {
  it("marks the words that changed", () => {
    expect(wordDiff("You have 14 days.", "You have 30 days.")).toEqual([
      { kind: "same", text: "You have " },
      { kind: "removed", text: "14" },
      { kind: "added", text: "30" },
      { kind: "same", text: " days." },
    ]);
  });

  it("joins changes that only spaces separate", () => {
    expect(wordDiff("we ship old red bikes here", "we ship new blue bikes here")).toEqual([
      { kind: "same", text: "we ship " },
      { kind: "removed", text: "old red" },
      { kind: "added", text: "new blue" },
      { kind: "same", text: " bikes here" },
    ]);
  });

  it("of equal texts has one piece, of nothing none", () => {
    expect(wordDiff("a b", "a b")).toEqual([{ kind: "same", text: "a b" }]);
    expect(wordDiff("", "")).toEqual([]);
    expect(wordDiff("", "new")).toEqual([{ kind: "added", text: "new" }]);
  });

  it("splits letters of any script, and keeps every character", () => {
    const text = "Größe: naïve 東京, e\u0301té\n\tok 👍🏽";
    expect(splitWords(text).join("")).toBe(text);
    expect(splitWords("Größe")).toEqual(["Größe"]);
  });

  it("gives both texts back, whatever they are", () => {
    let seed = 7;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    const words = ["a", "b", "c", "the", " ", "  ", ".", "\n", "ü"];
    const sentence = () => Array.from({ length: Math.floor(random() * 40) }, () => words[Math.floor(random() * words.length)]).join("");
    for (let round = 0; round < 400; round++) {
      const [before, after] = [sentence(), sentence()];
      const pieces = wordDiff(before, after);
      expect(without(pieces, "added")).toBe(before);
      expect(without(pieces, "removed")).toBe(after);
    }
  });

  it("keeps as many words as the classical table of the longest common subsequence", () => {
    const before = "the cat sat on the mat and the dog ran";
    const after = "a cat on the mat sat while the dog and cat ran";
    const [a, b] = [splitWords(before), splitWords(after)];
    const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
    for (let i = 1; i <= a.length; i++)
      for (let j = 1; j <= b.length; j++)
        table[i][j] = a[i - 1] === b[j - 1] ? table[i - 1][j - 1] + 1 : Math.max(table[i - 1][j], table[i][j - 1]);
    const changed = wordDiff(before, after).filter((piece) => piece.kind === "removed").flatMap((piece) => splitWords(piece.text));
    const spaces = changed.filter((word) => word === " ").length;
    expect(a.length - changed.length).toBeLessThanOrEqual(table[a.length][b.length]);
    expect(a.length - changed.length + spaces).toBeGreaterThanOrEqual(table[a.length][b.length]);
  });

  it("of long and wholly different texts stays fast and complete", () => {
    const before = Array.from({ length: 5000 }, (_, index) => `a${index}`).join(" ");
    const after = Array.from({ length: 5000 }, (_, index) => `b${index}`).join("-");
    const pieces = wordDiff(before, after);
    expect(without(pieces, "added")).toBe(before);
    expect(without(pieces, "removed")).toBe(after);
  });
});

describe("isAlike", () => {
  it.each([
    ["You have 14 days.", "You have 30 days.", true],
    ["5 working days", "Gift recipients do not see a price.", false],
    ["The same text.", "The same text.", true],
  ])("%s | %s", (before, after, expected) => {
    expect(isAlike(wordDiff(before, after))).toBe(expected);
  });
});
