/** What a job whose input is over still holds back: only later rows, which do not come, or its end would give it. */
import type { Report } from '../../api/figures';
import type { Job } from '../../api/types';
import { formatCount } from '../../format';
import type { Input } from './input';

const HAS_GROUPS = /\bGROUP\s+BY\b/i;
const HAS_WINDOWS = /\bGROUP\s+BY\b[\s\S]*\b(?:TUMBLE|HOP|SESSION)\s*\(/i;
/** Groups that are given as they change wait for nothing. */
const CHANGES = /\bEMIT\s+EVERY\b/i;

type Parts = Pick<Job, 'query' | 'queries' | 'phase'>;

/** Whether a query's groups come out when later rows have closed their windows. */
export const groupsWait = (query: string): boolean => HAS_WINDOWS.test(query) && !CHANGES.test(query);

function hasWindows({ query, queries }: Parts): boolean {
  const all = [query, ...Object.values(queries ?? {}).map((one) => one.query)];
  const grouped = all.filter((text) => HAS_GROUPS.test(text));
  return grouped.length > 0 && grouped.every(groupsWait);
}

function groupsIn({ stages, units }: Report): number {
  const grouping = stages.filter(({ kind, inputs }) => kind === null && inputs.length === 1);
  const making = new Set(grouping.map(({ stage }) => stage));
  return units.reduce((sum, unit) => sum + (making.has(unit.stage) ? unit.storedRows : 0), 0);
}

const counted = (count: number, one: string): string => `${formatCount(count)} ${one}${count === 1 ? '' : 's'}`;

/** Such as "36 groups wait for later rows"; null where nothing is known to wait. */
export function heldBack(job: Parts, input: Input, report: Report | undefined): string | null {
  if (input.kind !== 'finished' || job.phase !== 'running' || report === undefined) return null;
  const groups = hasWindows(job) ? groupsIn(report) : 0;
  const parts = [groups > 0 && counted(groups, 'group'), report.openRows > 0 && counted(report.openRows, 'row')];
  const held = parts.filter((part) => part !== false).join(' and ');
  return held === '' ? null : `${held} ${groups + report.openRows === 1 ? 'waits' : 'wait'} for later rows`;
}
