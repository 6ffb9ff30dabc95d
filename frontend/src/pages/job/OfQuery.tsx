/** Which of a job's queries is meant; nothing where there is only its own. */
import { NativeSelect } from '@mantine/core';
import type { Job } from '../../api/types';
import { furtherQueries, OWN } from './furtherQueries';

interface Props {
  job: Job;
  of: string;
  onChange: (of: string) => void;
}

export function OfQuery({ job, of, onChange }: Props) {
  const further = furtherQueries(job);
  if (further.length === 0) return null;
  return (
    <NativeSelect
      size="xs"
      aria-label="Results of"
      value={of}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[
        { value: OWN, label: 'its own query' },
        ...further.map(({ name, stopped }) => ({ value: name, label: stopped ? `${name} (stopped)` : name })),
      ]}
    />
  );
}
