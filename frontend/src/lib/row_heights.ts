/** The heights of the rows of a long table: measured where a row was on screen, estimated elsewhere. */

export class RowHeights {
  #heights: Float64Array;
  #offsets: Float64Array;
  #estimate: number;
  #isCurrent = false;

  constructor(count: number, estimate: number) {
    this.#heights = new Float64Array(count);
    this.#offsets = new Float64Array(count + 1);
    this.#estimate = estimate;
  }

  get count(): number {
    return this.#heights.length;
  }

  /** Note the height of a row; by how much it differs from what was thought. */
  measure(index: number, height: number): number {
    if (index >= this.count) return 0;
    const before = this.#heights[index] || this.#estimate;
    if (height === before && this.#heights[index]) return 0;
    this.#heights[index] = height;
    this.#isCurrent = false;
    return height - before;
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
    for (let index = 0; index < this.count; index++) this.#offsets[index + 1] = this.#offsets[index] + (this.#heights[index] || this.#estimate);
    this.#isCurrent = true;
  }
}
