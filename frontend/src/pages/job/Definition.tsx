/** What a job is: its query and how it runs. */
import { Button, Code } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { createJob } from '../../recipes';
import { CompareLink } from '../compare/CompareLink';
import classes from './Definition.module.css';
import { furtherQueries, type FurtherQuery } from './furtherQueries';
import { StopQueryDialog } from './StopQueryDialog';

// It has the editor, which is large.
const StartQueryDialog = lazy(() =>
  import('./StartQueryDialog').then((dialog) => ({ default: dialog.StartQueryDialog })),
);

export function Definition({ job, mayChange }: { job: Job; mayChange: boolean }) {
  const [isStarting, setStarting] = useState(false);
  const [stopping, setStopping] = useState<FurtherQuery | null>(null);
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
            {mayChange && (
              <Button variant="default" size="xs" onClick={() => setStarting(true)}>
                Start another beside it…
              </Button>
            )}
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
      {further.map((one) => (
        <Panel
          key={one.name}
          title={`Query ${one.name}`}
          note={one.stopped ? 'stopped; its results are kept' : 'beside it, over the same stored tuples'}
          actions={
            mayChange &&
            !one.stopped && (
              <Button variant="default" size="xs" onClick={() => setStopping(one)}>
                Stop…
              </Button>
            )
          }
          flush
        >
          <Code block className={classes.query}>
            {one.query}
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
      {isStarting && (
        <Suspense fallback={null}>
          <StartQueryDialog job={job} onClose={() => setStarting(false)} />
        </Suspense>
      )}
      {stopping !== null && <StopQueryDialog job={job} of={stopping} onClose={() => setStopping(null)} />}
    </div>
  );
}
