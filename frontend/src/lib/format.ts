/** Numbers, times and sizes as text. What is undefined is "n/a". */

export type Interval = [number, number] | null | undefined;

const UNDEFINED = "n/a";

export function formatNumber(value: number | null | undefined, digits = 2): string {
  return value === null || value === undefined || !Number.isFinite(value) ? UNDEFINED : rounded(value, digits);
}

/** A number rounded half to even, as every command rounds: 0.625 is 0.62 here too, where `toFixed` says 0.63. */
function rounded(value: number, digits: number): string {
  // Only a multiple of a power of a half lies exactly between two decimals.
  const isTie = Math.abs(value * 2 ** (digits + 1)) % 2 === 1;
  const below = Math.floor(value * 10 ** digits);
  return isTie ? ((below % 2 === 0 ? below : below + 1) / 10 ** digits).toFixed(digits) : value.toFixed(digits);
}

export function formatCount(value: number | null | undefined): string {
  return value === null || value === undefined ? UNDEFINED : value.toLocaleString("en-US");
}

export function formatInterval(interval: Interval, digits = 2): string {
  return interval ? `${formatNumber(interval[0], digits)} to ${formatNumber(interval[1], digits)}` : "no interval";
}

/** How many decimals a share deserves: its last digit is as coarse as half of its interval, two at least. */
function supportedPlaces(interval: Interval): number {
  if (!interval) return 2;
  const reach = (interval[1] - interval[0]) / 2;
  return reach > 0 ? Math.min(4, Math.max(2, Math.ceil(-Math.log10(reach)))) : 4;
}

/** A share of a whole with the decimals that its interval supports. */
export function formatRate(value: number | null | undefined, interval: Interval): string {
  return formatNumber(value, supportedPlaces(interval));
}

/** A share as a whole percentage. */
export function formatPercent(value: number): string {
  return `${Math.round(value * 100)}%`;
}

/** The interval of a share: "0.72 to 1.00". */
export function formatRateInterval(interval: Interval): string {
  return formatInterval(interval, supportedPlaces(interval));
}

/** A difference, with its sign: "+0.125". */
export function formatDifference(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined) return UNDEFINED;
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : value > 0 ? `+${text}` : text.replace("-", "−");
}

export function formatMilliseconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNDEFINED;
  if (value < 1) return "<1 ms";
  if (value < 1000) return `${Math.round(value)} ms`;
  return formatSeconds(value / 1000);
}

export function formatSeconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNDEFINED;
  if (value < 120) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  const minutes = Math.round(value / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** An amount of dollars with two digits that say something. */
export function formatDollars(value: number | null): string {
  if (value === null) return UNDEFINED;
  return value >= 0.1 || value === 0 ? value.toFixed(2) : String(Number(value.toPrecision(2)));
}

export function formatCost(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNDEFINED;
  return `${Number(value).toFixed(value !== 0 && value < 1 ? 4 : 2)} USD`;
}

/** "2026-11-17 04:09", in the time zone of the reader. */
export function formatTime(stamp: string | null | undefined): string {
  if (!stamp) return UNDEFINED;
  const time = new Date(stamp);
  if (Number.isNaN(time.getTime())) return stamp;
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}`;
}

export function formatPlural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Any JSON value as text: strings as they are, everything else as indented JSON. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** "newly_failing" as words: "newly failing". */
export function formatWords(name: string): string {
  return name.replaceAll("_", " ");
}

const CONTROL =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

/** Text with its invisible control and direction characters written out, so that it cannot look like other text. */
export function formatVisible(text: string): string {
  return text.replace(CONTROL, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
}
