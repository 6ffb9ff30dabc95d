/** The lines of a job's log, followed while it is live, or held as they are. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { jobEventsQuery, logQuery } from '../../../api/queries';
import type { Job } from '../../../api/types';
import { isLive } from '../input';
import { beganOf } from './beganOf';
import { filtered, readLog, withGenerations, type Filter } from './lines';
import type { Which } from './LogTools';

export function useLog(job: Job, which: Which, { level, generation, text }: Filter) {
  const client = useQueryClient();
  const [held, setHeld] = useState<string | null>(null);
  const isFollowed = isLive(job);
  const log = useQuery(logQuery(client, job.id, which, isFollowed));
  const events = useQuery(jobEventsQuery(job.id));
  const written = log.data?.text ?? '';
  const all = useMemo(() => readLog(held ?? written), [held, written]);
  const lines = useMemo(() => withGenerations(all, beganOf(events.data?.data ?? [])), [all, events.data]);
  const shown = useMemo(() => filtered(lines, { level, generation, text }), [lines, level, generation, text]);
  return {
    log,
    isLive: isFollowed,
    lines,
    shown,
    /** Those that wrote lines, newest first. */
    generations: [...new Set(lines.flatMap((line) => line.generation ?? []))].sort((one, other) => other - one),
    isHeld: held !== null,
    /** Entries that came since the log is held. */
    waiting: held === null ? 0 : readLog(written.slice(held.length)).length,
    hold: () => setHeld(written),
    goOn: () => setHeld(null),
  };
}
