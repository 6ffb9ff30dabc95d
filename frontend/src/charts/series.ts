/** Reports as the columns that a chart draws, with a hole where nothing was reported. */
import { bestNodes, drainingUnits, sidesOf, storingUnits } from '../api/adaptive';
import { quietAfter, total, type Report } from '../api/figures';

export interface Series {
  label: string;
  /** Null is a hole; undefined is passed over: there were reports, and this figure was not in one of them. */
  values: (number | null | undefined)[];
}

export interface ChartData {
  /** Seconds since 1970, rising. */
  atS: number[];
  series: Series[];
  /** When another run of the job began. */
  restartsS: number[];
}

type Figure = (report: Report) => number | null;

/** A pause that is longer than this and of which no report tells is no line from one point to the next. */
const GAP_S = 12;

/** A pause without any batch that is as long is drawn as one, with nothing that comes. */
const QUIET_S = 2;

/**
 * @param figures by the label of their series.
 */
export function chartOf(reports: Report[], figures: Record<string, Figure>): ChartData {
  const atS: number[] = [];
  const restartsS: number[] = [];
  const series = Object.keys(figures).map((label): Series => ({ label, values: [] }));
  const add = (report: Report) => {
    atS.push(report.atS);
    for (const one of series) one.values.push(figures[one.label]?.(report) ?? undefined);
  };
  let before: Report | undefined;
  for (const report of reports) {
    const told = Math.max(report.spanS, report.seconds + report.quietSeconds);
    if (before !== undefined && report.atS - before.atS > GAP_S + told) {
      atS.push(before.atS + report.spanS);
      for (const one of series) one.values.push(null);
    } else if (before !== undefined && report.quietSeconds >= QUIET_S) {
      const to = report.atS - report.seconds;
      const from = Math.max(before.atS + 1, to - report.quietSeconds);
      for (const atS of from < to ? [from, to] : []) add(quietAfter(before, atS));
    }
    if (before !== undefined && report.generation !== before.generation) restartsS.push(report.atS);
    add(report);
    before = report;
  }
  return { atS, series, restartsS };
}

const DAY_MS = 86_400_000;

/** No line is drawn over a pause of a stream that is longer. */
const SILENT_S = 60;

/**
 * How far the streams' event time is behind the clock, in milliseconds. Streams that replay the past are days behind
 * all the time: of those the drift since they were least behind is drawn, anew where the job began anew.
 */
export function lagChart(reports: Report[]): ChartData & { replayedMs: number | null } {
  const leasts = leastLags(reports);
  const least = leasts.at(-1) ?? Infinity;
  const isReplay = leasts.some(isFinite) && Math.min(...leasts) >= DAY_MS;
  const bases = new Map(reports.map((report, place) => [report, isReplay ? (leasts[place] ?? 0) : 0]));
  const names = [...new Set(reports.flatMap((report) => Object.keys(report.lagMs)))];
  const lagOf = (name: string): Figure => {
    return (report) => (name in report.lagMs ? (report.lagMs[name] ?? 0) - (bases.get(report) ?? 0) : null);
  };
  const chart = chartOf(reports, Object.fromEntries(names.map((name) => [name, lagOf(name)])));
  for (const { values } of chart.series) cutPauses(chart.atS, values);
  return { ...chart, replayedMs: isReplay ? least : null };
}

/** For each report the least lag of those between which the job did not begin anew. */
function leastLags(reports: Report[]): number[] {
  let part = -1;
  const leasts: number[] = [];
  const parts = reports.map((report, place) => {
    const before = reports[place - 1];
    if (before === undefined || beginsAnew(before, report)) leasts[(part += 1)] = Infinity;
    leasts[part] = Math.min(leasts[part] ?? Infinity, ...Object.values(report.lagMs));
    return part;
  });
  return parts.map((part) => leasts[part] ?? Infinity);
}

/** A job that begins without its state has its streams' first event times once more. */
function beginsAnew(before: Report, report: Report): boolean {
  return (
    report.generation !== before.generation &&
    Object.entries(report.marksUs).some(([name, mark]) => mark !== null && mark < (before.marksUs[name] ?? -Infinity))
  );
}

/** Make a hole of a long pause in which reports told nothing of a series. */
function cutPauses(atS: number[], values: Series['values']) {
  let last: number | undefined;
  values.forEach((value, place) => {
    if (value === undefined) return;
    const isLong = last !== undefined && (atS[place] ?? 0) - (atS[last] ?? 0) > SILENT_S;
    if (isLong && last !== undefined && place > last + 1) values[last + 1] = null;
    last = place;
  });
}

/** Live tuples of each stream. */
export function stateChart(reports: Report[]): ChartData {
  const names = [...new Set(reports.flatMap((report) => Object.keys(report.liveTuples)))];
  return chartOf(reports, Object.fromEntries(names.map((name) => [name, (report) => report.liveTuples[name] ?? null])));
}

const RING = 'ring';

/** Units of joins whose units come and go; of a ring, beside the best number of nodes. */
export function unitsChart(reports: Report[]): ChartData {
  const sides = sidesOf(reports);
  const storing = sides.map((side): [string, Figure] => [
    side === RING ? 'nodes' : `store ${side}`,
    (report) => storingUnits(report.adaptive, side),
  ]);
  return chartOf(reports, {
    ...Object.fromEntries(storing),
    ...(sides.includes(RING) && { 'N* nodes': (report: Report) => bestNodes(report.adaptive) }),
    drain: (report) => drainingUnits(report.adaptive),
  });
}

const perSecond =
  (counts: (report: Report) => Record<string, number>): Figure =>
  (report) =>
    report.seconds > 0 ? total(counts(report)) / report.seconds : null;

/** Tuples that found no partner because they were left out, by why. */
export const leftOutChart = (reports: Report[]): ChartData =>
  chartOf(reports, {
    late: perSecond((report) => report.late),
    shed: perSecond((report) => report.shed),
    unreadable: perSecond((report) => report.deadLetters),
  });

/** What a series is at a place: the last that was known, unless there is a hole between. */
export function valueAt({ values }: Series, place: number): number | null {
  for (let at = place; at >= 0; at -= 1) {
    const value = values[at];
    if (value !== undefined) return value;
  }
  return null;
}

/** The places of values that have no neighbour to draw a line to. */
export function alone(values: Series['values']): number[] {
  const found: number[] = [];
  let line: number[] = [];
  [...values, null].forEach((value, place) => {
    if (value === undefined) return;
    if (value !== null) line.push(place);
    else {
      if (line.length === 1) found.push(...line);
      line = [];
    }
  });
  return found;
}

/** What a chart shows, for who cannot see it. */
export function described({ label, values }: Series, format: (value: number | null) => string): string {
  const known = values.filter((value) => value != null);
  if (known.length === 0) return `${label}: nothing reported`;
  const least = known.reduce((one, other) => Math.min(one, other), Infinity);
  const most = known.reduce((one, other) => Math.max(one, other), -Infinity);
  return `${label}: now ${format(known[known.length - 1] ?? null)}, between ${format(least)} and ${format(most)}`;
}
