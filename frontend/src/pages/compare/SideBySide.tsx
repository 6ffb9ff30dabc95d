/** What each operator would cost for one query, as far as it can be told. */
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatRate } from '../../format';
import { explainDraft } from '../../recipes';
import { planOf } from '../join/plan';
import { streamsOf } from '../join/streamsOf';
import { ComparisonTable } from './ComparisonTable';
import { runningOver, runsBy } from './measured';
import { AUTO } from './setting';
import type { Comparison } from './useComparison';
import type { Settled } from './useSettled';

interface SideBySideProps {
  settled: Settled;
  comparison: Comparison;
  jobs: Job[];
  /** Names of all streams. */
  names: string[];
}

export function SideBySide({ settled, comparison, jobs, names }: SideBySideProps) {
  const { query, draft, checked, isValid } = settled;
  const { base, rows, isAsking, error, retry } = comparison;
  const plan = base && planOf(base);
  const auto = plan?.operator ?? AUTO;
  const arriving = plan?.arrivingPerS ?? null;
  const running = runningOver(jobs, streamsOf(query, names)).map((one) => ({ job: one, by: runsBy(one, auto) }));
  return (
    <Panel
      title="Side by side"
      note={
        arriving === null ? (
          'predicted; nothing is started'
        ) : (
          <>predicted from a sample with {formatRate(arriving)} of event time; nothing is started</>
        )
      }
      actions={<CopyAs recipe={explainDraft(draft)} what="explain this query" />}
      flush
    >
      {error !== null && <ProblemView error={error} onRetry={retry} />}
      {!isValid && !checked.isFetching && (
        <Empty title="Nothing to compare yet">The operators are listed here once the query is right.</Empty>
      )}
      {isValid && base === undefined && error === null && <Loading what="the operators" lines={6} />}
      {isValid && base !== undefined && (
        <ComparisonTable
          query={query}
          rows={rows}
          auto={auto}
          arrivingPerS={arriving}
          running={running}
          isAsking={isAsking || checked.isFetching}
        />
      )}
    </Panel>
  );
}
