/** Figures for people. Every number on the screen passes through here. */

const NONE = '–';

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** 12,345 in full. */
export const formatCount = (value: number | null | undefined): string => (value == null ? NONE : whole.format(value));

/** "1 row", "12,345 rows". */
export const formatRows = (rows: number): string => `${whole.format(rows)} ${rows === 1 ? 'row' : 'rows'}`;

/** 12.3K, for what changes every second. */
export const formatShort = (value: number | null | undefined): string => (value == null ? NONE : compact.format(value));

export const formatRate = (perS: number | null | undefined): string =>
  perS == null ? NONE : `${compact.format(perS)}/s`;

export const formatRatio = (ratio: number | null | undefined): string => (ratio == null ? NONE : ratio.toFixed(3));

export const formatShare = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function formatBytes(bytes: number | null | undefined): string {
  if (bytes == null) return NONE;
  const power = bytes < 1 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? whole.format(value) : value.toFixed(value < 100 ? 1 : 0)} ${BYTES[power] ?? ''}`;
}

const UNITS: [name: string, ms: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** The largest unit that fits, such as 1.5 s, 12 min or 3 d; and 0.5 ms. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms == null) return NONE;
  const size = Math.abs(ms);
  const [name, unit] = UNITS.find(([, one]) => size >= one) ?? ['ms', 1];
  const value = ms / unit;
  return `${Math.abs(value) < 10 ? value.toFixed(1).replace(/\.0$/, '') : value.toFixed(0)} ${name}`;
}

/** A time that may be very short, such as 1.20 ms or 0.140 µs. */
export function formatSeconds(seconds: number): string {
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  return seconds >= 1e-3 ? `${(seconds * 1e3).toPrecision(3)} ms` : `${(seconds * 1e6).toPrecision(3)} µs`;
}

/** How long it is since something was. Clocks of two machines differ, so nothing is ever in the future. */
export const formatSince = (at: string, nowMs: number): string => formatDuration(Math.max(0, nowMs - Date.parse(at)));

/** A cell of a row: texts as they are, and nothing as a dash. */
export function formatCell(value: unknown): string {
  if (value === null || value === undefined) return NONE;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const NUMERIC = /^(u?int|float|decimal)/;

const TIME = /^(timestamp|date)/;

export type Kind = 'number' | 'time' | 'text';

/** Of a column's values: numbers stand on the right, and neither they nor times are cut off. */
export const kindOf = (type: string): Kind => (NUMERIC.test(type) ? 'number' : TIME.test(type) ? 'time' : 'text');
