/** What a job's `operator` section says, in words. */
import type { Job } from '../../api/types';
import { formatCell } from '../../format';

export function operatorOf({ operator }: Pick<Job, 'operator'>): string {
  const { name, ...knobs } = operator;
  const given = Object.entries(knobs).map(([knob, value]) => `${knob} ${formatCell(value)}`);
  return [typeof name === 'string' ? name : 'auto', ...given].join(', ');
}
