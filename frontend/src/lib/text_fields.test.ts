import { describe, expect, it } from "vitest";
import { textFields } from "./text_fields";

describe("fields of a text", () => {
  it("are the entries of a map", () => {
    expect(textFields('{"question": "Why?", "n": [1, 2]}')).toEqual([
      { name: "question", value: "Why?" },
      { name: "n", value: "[1,2]" },
    ]);
  });

  it.each(["Why?", "[1]", '{"question": "a long te…', "{not json}"])("are none of %s", (text) => expect(textFields(text)).toBeNull());
});
