/** A query beside a job's own. */
import { Button, Code } from '@mantine/core';
import { Panel } from '../../components/Panel';
import classes from './Definition.module.css';
import type { FurtherQuery } from './furtherQueries';

interface FurtherQueryPanelProps {
  of: FurtherQuery;
  mayChange: boolean;
  onStop: () => void;
}

export function FurtherQueryPanel({ of, mayChange, onStop }: FurtherQueryPanelProps) {
  return (
    <Panel
      title={`Query ${of.name}`}
      note={of.stopped ? 'stopped; its results are kept' : 'beside it, in the same job'}
      actions={
        mayChange &&
        !of.stopped && (
          <Button variant="default" size="xs" onClick={onStop}>
            Stop…
          </Button>
        )
      }
      flush
    >
      <Code block className={classes.query}>
        {of.query}
      </Code>
    </Panel>
  );
}
