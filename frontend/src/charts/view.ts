/** Which part of their time charts show, and how high they are. */
import type { ChartData } from './series';

/** A stretch of time, in seconds since 1970. */
export interface Stretch {
  fromS: number;
  toS: number;
}

/** What charts of a page have in common. */
export interface View {
  /** Null for all there is. */
  zoom: Stretch | null;
  isLog: boolean;
}

/** Times that are further apart are told with their date. */
export const DAY_S = 86_400;

/** Nothing happens in less: drivers report once a second. */
const LEAST_S = 5;

/** All the time that a chart has; null where it has none. */
export function allOf({ atS }: ChartData): Stretch | null {
  const [fromS, toS] = [atS[0], atS[atS.length - 1]];
  return fromS === undefined || toS === undefined || toS - fromS < LEAST_S ? null : { fromS, toS };
}

/** A stretch as long, moved into `all`; null if it is as long as that, or was never in it. */
export function within(all: Stretch | null, { fromS, toS }: Stretch): Stretch | null {
  if (all === null || toS <= all.fromS || fromS >= all.toS) return null;
  const lengthS = Math.max(toS - fromS, LEAST_S);
  if (lengthS >= all.toS - all.fromS) return null;
  const begin = Math.min(Math.max(fromS, all.fromS), all.toS - lengthS);
  return { fromS: begin, toS: begin + lengthS };
}

/** `times` as long, around the same middle. */
export function scaled({ fromS, toS }: Stretch, times: number): Stretch {
  const [middle, half] = [(fromS + toS) / 2, ((toS - fromS) / 2) * times];
  return { fromS: middle - half, toS: middle + half };
}

/** Later by this share of its length; earlier where it is below 0. */
export function moved({ fromS, toS }: Stretch, share: number): Stretch {
  const byS = (toS - fromS) * share;
  return { fromS: fromS + byS, toS: toS + byS };
}

export interface Ceiling {
  /** The highest value that has room. */
  value: number;
  /** The highest value of all, where it has none. */
  cut: { value: number; atS: number } | null;
}

/** With fewer values none is a spike. */
const VALUES_MIN = 40;
const PERCENTILE = 0.95;
/** So many times the percentile is a spike, and takes the room of everything else. */
const SPIKE = 3;
const ROOM = 1.5;

/** How high a chart is. A spike, such as what waited for a restart, is cut off; a log scale has room for it. */
export function ceilingOf({ atS, series }: ChartData, { zoom, isLog }: View): Ceiling {
  const known: { value: number; atS: number }[] = [];
  atS.forEach((at, place) => {
    if (zoom !== null && (at < zoom.fromS || at > zoom.toS)) return;
    for (const { values } of series) {
      const value = values[place];
      if (value != null && value > 0) known.push({ value, atS: at });
    }
  });
  known.sort((one, other) => one.value - other.value);
  const most = known[known.length - 1];
  if (most === undefined) return { value: 1, cut: null };
  const usual = known[Math.floor((known.length - 1) * PERCENTILE)]?.value ?? most.value;
  const isSpike = !isLog && known.length >= VALUES_MIN && most.value > usual * SPIKE;
  return isSpike ? { value: usual * ROOM, cut: most } : { value: most.value, cut: null };
}
