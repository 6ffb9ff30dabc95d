/** The plan of a job that has several stages, with how many rows a second go along each edge. */
import type { Report } from '../../api/figures';
import { givingResults, type StageInput } from '../../api/stages';
import { Panel } from '../../components/Panel';
import { StageTree } from '../../components/StageTree';
import { formatRate, formatShort } from '../../format';

interface StagesPanelProps {
  report: Report | undefined;
  /** Whether the report is of now: rates are shown then. */
  isComing: boolean;
}

/** Rows a second that left a stream or a stage in a report's span; null of a relation, which does not flow. */
export function rateAlong(report: Report, from: StageInput): number | null {
  if ('relation' in from) return null;
  if (report.seconds === 0) return 0;
  if ('stream' in from) return (report.tuples[from.stream] ?? 0) / report.seconds;
  // What the last stage finds are the results, where all of these are of one stage.
  const isLast = from.stage === report.stages.at(-1)?.stage && givingResults(report.stages).length === 1;
  const found = isLast ? report.results : report.stages.find(({ stage }) => stage === from.stage)?.results;
  return (found ?? 0) / report.seconds;
}

export function StagesPanel({ report, isComing }: StagesPanelProps) {
  if (report === undefined || report.stages.length < 2) return null;
  const stored = (number: number): number =>
    report.units.filter(({ stage }) => stage === number).reduce((sum, unit) => sum + unit.storedRows, 0);
  return (
    <Panel title="Stages" note={isComing ? 'rows a second along each edge' : 'no input comes'}>
      <StageTree
        stages={report.stages}
        along={(from) => {
          const rate = rateAlong(report, from);
          return isComing && rate !== null ? formatRate(rate) : null;
        }}
        about={({ stage, openRows }) => {
          const units = report.units.filter((unit) => unit.stage === stage).length;
          return `${String(units)} ${units === 1 ? 'unit' : 'units'}, ${formatShort(stored(stage))} stored${openRows > 0 ? `, ${formatShort(openRows)} wait` : ''}`;
        }}
      />
    </Panel>
  );
}
