/** Traffic between a job and the object store that holds its state; not shown if the state is in a folder. */
import type { Report } from '../../api/figures';
import { Panel } from '../../components/Panel';
import { Stat, Stats } from '../../components/Stat';
import { formatBytes, formatCount, formatShare } from '../../format';

interface Traffic {
  put: number;
  putBytes: number;
  fetchedBytes: number;
  /** Openings of segments, and those of them that the machine's cache had. */
  opened: number;
  served: number;
  retries: number;
  seconds: number;
}

/** Of all reports of the range; null where none tells of a store. */
export function trafficOf(reports: readonly Report[]): Traffic | null {
  const told = reports.filter((report) => report.stateTraffic !== null);
  if (told.length === 0) return null;
  const sum = (name: string) => told.reduce((sofar, report) => sofar + (report.stateTraffic?.[name] ?? 0), 0);
  return {
    put: sum('put'),
    putBytes: sum('put_bytes'),
    fetchedBytes: sum('fetched_bytes'),
    opened: sum('served') + sum('fetched'),
    served: sum('served'),
    retries: sum('retries'),
    seconds: told.reduce((sofar, report) => sofar + report.seconds + report.quietSeconds, 0),
  };
}

export function StorePanel({ reports, span }: { reports: readonly Report[]; span: string }) {
  const traffic = trafficOf(reports);
  if (traffic === null) return null;
  const perSecond = (bytes: number) =>
    traffic.seconds > 0 ? `${formatBytes(bytes / traffic.seconds)}/s` : formatBytes(bytes);
  return (
    <Panel title="State in the store" note={`of all units, ${span}`}>
      <Stats>
        <Stat label="Written" value={perSecond(traffic.putBytes)} note={`${formatCount(traffic.put)} objects`} />
        <Stat label="Fetched" value={perSecond(traffic.fetchedBytes)} note="segments and manifests" />
        <Stat
          label="From the machine's cache"
          value={traffic.opened > 0 ? formatShare(traffic.served / traffic.opened) : '–'}
          note={`of ${formatCount(traffic.opened)} openings`}
        />
        <Stat
          label="Asked again"
          value={formatCount(traffic.retries)}
          note={traffic.retries > 0 ? 'the store failed, or gave what was damaged' : 'the store never failed'}
        />
      </Stats>
    </Panel>
  );
}
