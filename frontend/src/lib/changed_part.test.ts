import { describe, expect, it } from "vitest";
import { changedTexts } from "./changed_part";

const whole = (pieces: { text: string }[]) => pieces.map((piece) => piece.text).join("");

describe("changedTexts", () => {
  it("begins shortly before the first difference, at a word", () => {
    const start = "You can return unused things within thirty days of the day on which ";
    const { before, after } = changedTexts(`${start}they came.`, `${start}you paid.`);
    expect(whole(after)).toBe("… of the day on which you paid.");
    expect(after.filter((piece) => piece.kind === "added").map((piece) => piece.text)).toEqual(["you paid"]);
    expect(before.filter((piece) => piece.kind === "removed").map((piece) => piece.text)).toEqual(["they came"]);
  });

  it("leaves short and equal texts whole", () => {
    expect(whole(changedTexts("two euros", "ten euros").after)).toBe("ten euros");
    const text = "a ".repeat(60);
    expect(whole(changedTexts(text, text).after)).toBe(text);
  });
});
