/** The query whose operators are compared: a job's, or one that is typed here. */
import { Select } from '@mantine/core';
import type { Job } from '../../api/types';
import { Panel } from '../../components/Panel';
import { SqlEditor } from '../../editor/SqlEditor';
import { useColumns } from '../join/useColumns';
import { Verdict } from '../join/Verdict';
import classes from './ComparedQuery.module.css';
import type { Settled } from './useSettled';

const TYPED = 'typed';

interface ComparedQueryProps {
  job: Job | undefined;
  jobs: Job[];
  /** Names of all streams. */
  names: string[];
  query: string;
  settled: Settled;
  onType: (query: string) => void;
  /** Null where it is to be typed here. */
  onChoose: (job: string | null) => void;
}

export function ComparedQuery({ job, jobs, names, query, settled, onType, onChoose }: ComparedQueryProps) {
  const columns = useColumns(settled.query, names);
  return (
    <Panel
      title="Query"
      actions={
        <Select
          size="xs"
          w={240}
          aria-label="Whose query"
          data={[{ value: TYPED, label: 'typed here' }, ...jobs.map(({ id, name }) => ({ value: id, label: `of ${name}` }))]}
          value={job?.query === query ? job.id : TYPED}
          allowDeselect={false}
          searchable
          comboboxProps={{ withinPortal: false }}
          onChange={(chosen) => onChoose(chosen === TYPED ? null : chosen)}
        />
      }
    >
      <div className={classes.editor}>
        <SqlEditor label="Query" value={query} onChange={onType} squiggles={settled.squiggles} columns={columns} />
        <Verdict diagnostics={settled.checked.data} isChecking={settled.checked.isFetching} />
      </div>
    </Panel>
  );
}
