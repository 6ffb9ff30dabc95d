/** When a log's entry was written, in the zone that was chosen where the entry says in which zone its time is. */
import { useTimes } from '../../../times';
import type { LogLine } from './lines';

export function LogTime({ line, className }: { line: LogLine; className?: string | undefined }) {
  const times = useTimes();
  return (
    <time className={className} title={line.at}>
      {line.atMs === null ? line.time || '–' : times.clockMs(line.atMs)}
    </time>
  );
}
