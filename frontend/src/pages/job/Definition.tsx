/** What a job is: its query and how it runs. */
import { Code } from '@mantine/core';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { createJob } from '../../recipes';
import { CompareLink } from '../compare/CompareLink';
import classes from './Definition.module.css';
import { furtherQueries } from './furtherQueries';

export function Definition({ job }: { job: Job }) {
  const { query, queries, operator, results, run } = job;
  const further = furtherQueries(job);
  // A copy gets a store of its own.
  const policy = Object.fromEntries(Object.entries(results).filter(([name]) => name !== 'store'));
  const draft = { query, ...(further.length > 0 && { queries }), operator, results: policy, run };
  const recipe = createJob(`${job.name} copy`, draft, false);
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
      {further.map(({ name, query: text, stopped }) => (
        <Panel
          key={name}
          title={`Query ${name}`}
          note={stopped ? 'stopped; its results are kept' : 'beside it, over the same stored tuples'}
          flush
        >
          <Code block className={classes.query}>
            {text}
          </Code>
        </Panel>
      ))}
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
