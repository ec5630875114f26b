/** The heights of the rows of a long table: measured where a row was on screen, estimated elsewhere. */

export interface RowHeight {
  index: number;
  height: number;
}

/** After so many rows the estimate stays as it is: the scroll bar would jump with every change. */
const ENOUGH = 20;

export class RowHeights {
  #heights: Float64Array;
  #offsets: Float64Array;
  #estimate: number;
  #known = 0;
  #sumOfKnown = 0;
  #isCurrent = false;

  constructor(count: number, estimate: number) {
    this.#heights = new Float64Array(count);
    this.#offsets = new Float64Array(count + 1);
    this.#estimate = estimate;
  }

  get count(): number {
    return this.#heights.length;
  }

  /** Note the heights of rows; whether any of them is new. Other rows are thought to be as high as the first ones on average. */
  measure(rows: RowHeight[]): boolean {
    let isNew = false;
    for (const { index, height } of rows) {
      if (index >= this.count || height === this.#heights[index]) continue;
      if (this.#heights[index] === 0 && this.#known < ENOUGH) {
        this.#known++;
        this.#sumOfKnown += height;
        this.#estimate = this.#sumOfKnown / this.#known;
      }
      this.#heights[index] = height;
      isNew = true;
    }
    if (isNew) this.#isCurrent = false;
    return isNew;
  }

  height(index: number): number {
    return this.#heights[index] || this.#estimate;
  }

  /** Where a row begins; for the number of rows, where the last one ends. */
  offset(index: number): number {
    this.#sum();
    return this.#offsets[Math.max(0, Math.min(index, this.count))];
  }

  /** The row at a height from the top. */
  rowAt(top: number): number {
    this.#sum();
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#offsets[middle] <= top) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  #sum(): void {
    if (this.#isCurrent) return;
    for (let index = 0; index < this.count; index++) this.#offsets[index + 1] = this.#offsets[index] + this.height(index);
    this.#isCurrent = true;
  }
}
