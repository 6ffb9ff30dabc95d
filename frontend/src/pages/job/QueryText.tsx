/** What a job asks, where its figures are; it is copied as it was written. */
import { Code } from '@mantine/core';
import type { Job } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { Panel } from '../../components/Panel';
import { inClauses } from './clauses';
import { furtherQueries } from './furtherQueries';
import classes from './QueryText.module.css';

export function QueryText({ job }: { job: Job }) {
  const beside = furtherQueries(job).filter(({ stopped }) => !stopped).length;
  return (
    <div className={classes.around}>
      <Panel
        title="Query"
        note={beside > 0 && `${String(beside)} more beside it, in Definition`}
        actions={<CopyButton text={job.query} what="the query" />}
        flush
      >
        <Code block className={classes.query} tabIndex={0} role="region" aria-label="Text of the query">
          {inClauses(job.query)}
        </Code>
      </Panel>
    </div>
  );
}
