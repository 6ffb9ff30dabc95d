/** A few rows that the query would give, from samples, before there is a job; and what was looked at. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { previewQuery } from '../../api/queries';
import type { Draft, Preview as Found } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { Rows } from '../../components/Rows';
import { formatRows } from '../../format';
import { previewDraft } from '../../recipes';
import { useTimes } from '../../times';
import classes from './Preview.module.css';
import { lookedText } from './looked';

const HEIGHT_PX = 300;

interface PreviewProps {
  /** What is right; null where nothing is. */
  draft: Draft | null;
  /** It was checked as it is now; until then the rows of before stay. */
  isReady: boolean;
}

export function Preview({ draft, isReady }: PreviewProps) {
  const previewed = useQuery({
    ...previewQuery(draft ?? { query: '' }),
    enabled: draft !== null && isReady,
    placeholderData: (before) => before,
  });
  const actions = draft !== null && (
    <>
      <Button variant="default" loading={previewed.isFetching} onClick={() => void previewed.refetch()}>
        Preview again
      </Button>
      <CopyAs recipe={previewDraft(draft)} what="preview this query" />
    </>
  );
  return (
    <Panel title="Preview" note="from samples, not a result; nothing is started" actions={actions} flush>
      {draft === null ? (
        <Empty title="No rows yet">Once the query is right, up to 20 of its rows appear here.</Empty>
      ) : previewed.error !== null ? (
        <div className={classes.problem}>
          <ProblemView error={previewed.error} />
        </div>
      ) : previewed.data === undefined ? (
        <Loading what="the preview" />
      ) : (
        <Sampled found={previewed.data} isOld={previewed.isPlaceholderData} />
      )}
    </Panel>
  );
}

function Sampled({ found, isOld }: { found: Found; isOld: boolean }) {
  const times = useTimes();
  return (
    <div aria-busy={isOld} className={classes.sampled}>
      {found.queries.map(({ query, columns, rows, reason, large_rows }) => (
        <div key={query}>
          <p className={classes.words} role="status">
            {query !== '' && `${query}: `}
            {reason === null ? formatRows(rows.length) : `No row: ${reason}.`}
            {large_rows > 0 && ` ${formatRows(large_rows)} left out as too large to show.`}
          </p>
          {rows.length > 0 && <Rows label="Rows of the preview" columns={columns} rows={rows} height={HEIGHT_PX} />}
        </div>
      ))}
      <p className={classes.words}>
        Looked at {found.streams.map((stream) => lookedText(stream, times)).join('; ')}
        {found.cut_off && '; then time ran out'}.
      </p>
    </div>
  );
}
