/** What the job's processes wrote, followed while it runs: by level, by generation, and by a text. */
import { Button, NativeSelect, SegmentedControl, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useDeferredValue, useMemo, useState } from 'react';
import { useSearchParams } from 'react-router';
import { jobEventsQuery, logQuery } from '../../../api/queries';
import type { Job } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { Empty } from '../../../components/Empty';
import { PauseIcon, PlayIcon } from '../../../components/icons';
import { Loading } from '../../../components/Loading';
import { Panel } from '../../../components/Panel';
import { ProblemView } from '../../../components/ProblemView';
import { save } from '../../../download';
import { formatCount } from '../../../format';
import { jobLog } from '../../../recipes';
import { beganOf } from './beganOf';
import { filtered, readLog, withGenerations, type Level, type LogLine } from './lines';
import { LogLines } from './LogLines';
import classes from './LogsPanel.module.css';

const LOGS = { driver: 'Driver', spark: 'Spark' } as const;
type Which = keyof typeof LOGS;

const LEVELS: { value: Level; label: string }[] = [
  { value: 'debug', label: 'All levels' },
  { value: 'warning', label: 'Warnings and errors' },
  { value: 'error', label: 'Errors' },
];

export function LogsPanel({ job }: { job: Job }) {
  const client = useQueryClient();
  const [parameters, setParameters] = useSearchParams();
  const which: Which = parameters.get('log') === 'spark' ? 'spark' : 'driver';
  const level = LEVELS.find(({ value }) => value === parameters.get('level'))?.value ?? 'debug';
  const generation = which === 'driver' ? Number(parameters.get('generation')) || null : null;
  const [text, setText] = useState('');
  const sought = useDeferredValue(text);
  const [held, hold] = useState<string | null>(null);

  const isLive = job.wanted === 'running' || job.observed !== 'stopped';
  const log = useQuery(logQuery(client, job.id, which, isLive));
  const events = useQuery(jobEventsQuery(job.id));
  const written = log.data?.text ?? '';
  const all = useMemo(() => readLog(held ?? written), [held, written]);
  const lines = useMemo(() => withGenerations(all, beganOf(events.data?.data ?? [])), [all, events.data]);
  const shown = useMemo(
    () => filtered(lines, { level, generation, text: sought }),
    [lines, level, generation, sought],
  );
  const generations = [...new Set(lines.flatMap((line) => line.generation ?? []))].sort((one, other) => other - one);
  const waiting = held === null ? 0 : readLog(written.slice(held.length)).length;

  const ask = (name: string, value: string | null) => {
    const next = new URLSearchParams(parameters);
    if (value === null) next.delete(name);
    else next.set(name, value);
    setParameters(next, { replace: true });
  };
  const download = () => {
    const raw = shown.map((line) => `${line.raw}\n`).join('');
    save(new Blob([raw], { type: 'text/plain' }), `${job.name}-${which}.log`);
  };
  return (
    <Panel
      title="Logs"
      note={<Counted shown={shown.length} all={lines.length} isLive={isLive && held === null} />}
      actions={
        <>
          <Button
            variant="default"
            leftSection={held === null ? <PauseIcon /> : <PlayIcon />}
            disabled={held === null && !isLive}
            onClick={() => hold(held === null ? written : null)}
          >
            {held === null ? 'Pause' : `Go on${waiting > 0 ? `, ${formatCount(waiting)} wait` : ''}`}
          </Button>
          <Button variant="default" disabled={shown.length === 0} onClick={download}>
            Download
          </Button>
          <CopyAs recipe={jobLog(job.name, which, isLive)} what="read this log" />
        </>
      }
      flush
    >
      <div className={classes.tools}>
        <SegmentedControl
          size="xs"
          aria-label="Which log"
          value={which}
          onChange={(value) => {
            hold(null);
            ask('log', value === 'driver' ? null : value);
          }}
          data={Object.entries(LOGS).map(([value, label]) => ({ value, label }))}
        />
        <NativeSelect
          size="xs"
          aria-label="Level"
          value={level}
          data={LEVELS}
          onChange={(event) => ask('level', event.currentTarget.value === 'debug' ? null : event.currentTarget.value)}
        />
        {which === 'driver' && (
          <NativeSelect
            size="xs"
            aria-label="Generation"
            value={generation === null ? '' : String(generation)}
            data={[
              { value: '', label: 'All generations' },
              ...[...new Set([...(generation === null ? [] : [generation]), ...generations])].map((one) => ({
                value: String(one),
                label: `Generation ${String(one)}`,
              })),
            ]}
            onChange={(event) => ask('generation', event.currentTarget.value || null)}
          />
        )}
        <TextInput
          className={classes.text}
          size="xs"
          aria-label="Lines with this text"
          placeholder="with this text"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </div>
      {log.error !== null && <ProblemView error={log.error} onRetry={() => void log.refetch()} />}
      {log.data?.hasGap === true && (
        <p className={classes.gap} role="status">
          More was written between two looks than the platform gives at once: some lines are missing, or the log was
          begun anew.
        </p>
      )}
      {log.data === undefined ? (
        log.isPending && <Loading what="the log" lines={6} />
      ) : shown.length === 0 ? (
        <Nothing lines={lines} which={which} />
      ) : (
        <LogLines key={which} lines={shown} sought={sought} hasGenerations={which === 'driver'} />
      )}
    </Panel>
  );
}

function Counted({ shown, all, isLive }: { shown: number; all: number; isLive: boolean }) {
  const of = shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`;
  return <>{`${of} ${all === 1 ? 'entry' : 'entries'}, newest last${isLive ? '; it is followed' : ''}`}</>;
}

function Nothing({ lines, which }: { lines: LogLine[]; which: Which }) {
  if (lines.length > 0) return <Empty title="No entry is like that">Take a lower level, or another text.</Empty>;
  return (
    <Empty title="Nothing was written">
      {which === 'driver'
        ? 'The driver is silent as long as all is well. What is done to the job is among its events.'
        : 'Spark writes as soon as the job starts, on the machine where it runs.'}
    </Empty>
  );
}
