/** What a job is: its query and how it runs. */
import { Code } from '@mantine/core';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { createJob } from '../../recipes';
import { CompareLink } from '../compare/CompareLink';
import classes from './Definition.module.css';

export function Definition({ job }: { job: Job }) {
  const { query, operator, results, run } = job;
  // A copy gets a store of its own.
  const policy = Object.fromEntries(Object.entries(results).filter(([name]) => name !== 'store'));
  const recipe = createJob(`${job.name} copy`, { query, operator, results: policy, run }, false);
  return (
    <div className={classes.columns}>
      <Panel
        title="Query"
        note={`version ${String(job.version)}`}
        actions={
          <>
            <CompareLink of={{ job: job.id }} />
            <CopyAs recipe={recipe} what="make a copy of this job" />
          </>
        }
        flush
      >
        <Code block className={classes.query}>
          {query}
        </Code>
      </Panel>
      {Object.entries({ Operator: operator, Results: results, Run: run }).map(([title, section]) => (
        <Panel key={title} title={title} flush>
          <Code block className={classes.query}>
            {JSON.stringify(section, null, 2)}
          </Code>
        </Panel>
      ))}
    </div>
  );
}
