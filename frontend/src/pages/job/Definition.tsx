/** What a job is: its query and how it runs. */
import { Button, Code } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { createJob, type Recipe } from '../../recipes';
import { CompareLink } from '../compare/CompareLink';
import classes from './Definition.module.css';
import { furtherQueries, type FurtherQuery } from './furtherQueries';
import { FurtherQueryPanel } from './FurtherQueryPanel';
import { StopQueryDialog } from './StopQueryDialog';

// It has the editor, which is large.
const StartQueryDialog = lazy(() =>
  import('./StartQueryDialog').then((dialog) => ({ default: dialog.StartQueryDialog })),
);

export function Definition({ job, mayChange }: { job: Job; mayChange: boolean }) {
  const [isStarting, setStarting] = useState(false);
  const [stopping, setStopping] = useState<FurtherQuery | null>(null);
  const { query, operator, results, run } = job;
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
            <CopyAs recipe={recipeOf(job)} what="make a copy of this job" />
          </>
        }
        flush
      >
        <Code block className={classes.query}>
          {query}
        </Code>
      </Panel>
      {furtherQueries(job).map((one) => (
        <FurtherQueryPanel key={one.name} of={one} mayChange={mayChange} onStop={() => setStopping(one)} />
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

/** Makes a copy, which gets a store of its own. */
function recipeOf(job: Job): Recipe {
  const { name, query, queries, operator, results, run } = job;
  const policy = Object.fromEntries(Object.entries(results).filter(([setting]) => setting !== 'store'));
  const draft = { query, ...(furtherQueries(job).length > 0 && { queries }), operator, results: policy, run };
  return createJob(`${name} copy`, draft, false);
}
