/** How many records of a sample could not be read. */
import type { Sample } from '../../api/types';
import { formatCount } from '../../format';

export const countBad = (sample: Pick<Sample, 'bad_records'>): number =>
  Object.values(sample.bad_records).reduce((sum, count) => sum + count, 0);

/** The same in words; nothing is said of what nobody could look at. */
export function badOf(sample: Pick<Sample, 'bad_records'> | undefined): string | undefined {
  if (sample === undefined) return undefined;
  const bad = countBad(sample);
  return bad === 0 ? 'no bad records' : `${formatCount(bad)} bad ${bad === 1 ? 'record' : 'records'}`;
}
