/** What a cell of the grid shows of its text: where it differs from the text of a chosen column. */

import { isAlike, type Piece, wordDiff } from "./word_diff";

export interface CellDifference {
  pieces: Piece[];
  /** `same`, `marked` where the words that differ are marked, `apart` where the texts share too little for marks. */
  kind: "same" | "marked" | "apart";
}

/** The difference of a text from another, of which the first `most` characters are looked at. */
export function cellDifference(before: string, after: string, most: number): CellDifference {
  if (before === after) return { pieces: [{ kind: "same", text: after }], kind: "same" };
  const pieces = wordDiff(before.slice(0, most), after.slice(0, most));
  const rest: Piece[] = after.length > most ? [{ kind: "same", text: after.slice(most) }] : [];
  if (!isAlike(pieces)) return { pieces: [{ kind: "same", text: after }], kind: "apart" };
  return { pieces: [...pieces, ...rest], kind: "marked" };
}
