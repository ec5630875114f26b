/** What kind of scores a metric gives. */

import type { Figures } from "./types";

const TOLERANCE = 1e-6;

/** Whether every score of a metric is 0 or 1: exactly then its variance is mean * (1 - mean). */
export function passesOrFails(figures: Figures): boolean {
  const { mean, stdev, n_scored: n } = figures;
  if (mean === null || stdev === null || n < 2) return false;
  return Math.abs((stdev * stdev * (n - 1)) / n - mean * (1 - mean)) < TOLERANCE;
}
