/** What a test guessed about columns, in sentences. */
import type { Sample } from '../../../api/types';
import { formatCount } from '../../../format';

export const widenedIn = ({ column, type, instead, values, example }: Sample['widened'][number]): string =>
  `${column} became ${type} because of ${formatCount(values)} ${values === 1 ? 'value' : 'values'}, such as "${example}". ` +
  `Give it the type ${instead} under Columns, and ${values === 1 ? 'that record is bad' : 'those records are bad'}.`;

export const timesIn = ({ times }: Pick<Sample, 'times'>): string =>
  `May be the event time: ${times
    .map(({ name, time_unit: unit }) => (unit == null ? name : `${name} (whole numbers, unit ${unit})`))
    .join(', ')}.`;
