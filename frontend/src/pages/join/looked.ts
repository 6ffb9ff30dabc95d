/** What a preview looked at of a stream, in words. */
import type { Preview } from '../../api/types';
import { formatCount, formatRows } from '../../format';
import type { Times } from '../../times';

type Looked = Preview['streams'][number];

export function lookedText({ name, rows, bad_records, large_rows, first, last }: Looked, times: Times): string {
  const [from, to] = [times.time(first), times.time(last)];
  const when = from === to ? `at ${from}` : `from ${from} to ${to}`;
  const parts = [`${name}: ${formatRows(rows)}${first === null ? '' : ` ${when}`}`];
  if (bad_records > 0) parts.push(`${formatCount(bad_records)} that cannot be read`);
  if (large_rows > 0) parts.push(`${formatCount(large_rows)} left out for their size`);
  return parts.join(', ');
}
