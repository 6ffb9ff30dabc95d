/** What the job's processes wrote, followed while it runs: by level, by generation, and by a text. */
import { Button } from '@mantine/core';
import { useDeferredValue, useState } from 'react';
import { useSearchParams } from 'react-router';
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
import type { LogLine } from './lines';
import { LogLines } from './LogLines';
import classes from './LogsPanel.module.css';
import { LEVELS, LogTools, type Which } from './LogTools';
import { useLog } from './useLog';

export function LogsPanel({ job }: { job: Job }) {
  const [parameters, setParameters] = useSearchParams();
  const which: Which = parameters.get('log') === 'spark' ? 'spark' : 'driver';
  const level = LEVELS.find(({ value }) => value === parameters.get('level'))?.value ?? 'debug';
  const generation = which === 'driver' ? Number(parameters.get('generation')) || null : null;
  const [text, setText] = useState('');
  const sought = useDeferredValue(text);
  const { log, isLive, lines, shown, generations, isHeld, waiting, hold, goOn } = useLog(job, which, {
    level,
    generation,
    text: sought,
  });

  const ask = (name: string, value: string | null) => {
    if (name === 'log') goOn();
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
      note={<Counted shown={shown.length} all={lines.length} isLive={isLive && !isHeld} />}
      actions={
        <>
          <HoldButton isHeld={isHeld} isLive={isLive} waiting={waiting} onHold={hold} onGoOn={goOn} />
          <Button variant="default" disabled={shown.length === 0} onClick={download}>
            Download
          </Button>
          <CopyAs recipe={jobLog(job.name, which, isLive)} what="read this log" />
        </>
      }
      flush
    >
      <LogTools
        which={which}
        level={level}
        generation={generation}
        generations={generations}
        text={text}
        onChange={ask}
        onText={setText}
      />
      {log.error !== null && <ProblemView error={log.error} onRetry={() => void log.refetch()} />}
      {log.data?.hasGap === true && <Gap />}
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

interface HoldButtonProps {
  isHeld: boolean;
  isLive: boolean;
  /** Entries that came since. */
  waiting: number;
  onHold: () => void;
  onGoOn: () => void;
}

function HoldButton({ isHeld, isLive, waiting, onHold, onGoOn }: HoldButtonProps) {
  return (
    <Button
      variant="default"
      leftSection={isHeld ? <PlayIcon /> : <PauseIcon />}
      disabled={!isHeld && !isLive}
      onClick={isHeld ? onGoOn : onHold}
    >
      {isHeld ? `Go on${waiting > 0 ? `, ${formatCount(waiting)} wait` : ''}` : 'Pause'}
    </Button>
  );
}

function Counted({ shown, all, isLive }: { shown: number; all: number; isLive: boolean }) {
  const of = shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`;
  return <>{`${of} ${all === 1 ? 'entry' : 'entries'}, newest last${isLive ? '; it is followed' : ''}`}</>;
}

function Gap() {
  return (
    <p className={classes.gap} role="status">
      More was written between two looks than the platform gives at once: some lines are missing, or the log was begun
      anew.
    </p>
  );
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
