/** One stream: its entry, its first rows, how skewed its columns are, and who reads it. */
import { Button, Code } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from 'react-router';
import { sampleQuery, streamQuery } from '../../api/queries';
import type { Stream } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { Rows } from '../../components/Rows';
import { Stat, Stats } from '../../components/Stat';
import { formatCount, formatRate } from '../../format';
import { createStream, sampleStream } from '../../recipes';
import { useMe } from '../../shell/useMay';
import { BadRecords } from './BadRecords';
import { badOf } from './countBad';
import { mayChange } from '../../shell/mayChange';
import { PushPanel } from './PushPanel';
import { Skew } from './Skew';
import { delayOf, sourceOf, timeOf } from './source';
import { StreamActions } from './StreamActions';
import classes from './StreamPage.module.css';
import { UsedBy } from './UsedBy';

const ROWS_PX = 420;

export function StreamPage() {
  const { name = '' } = useParams();
  const stream = useQuery(streamQuery(name));
  if (stream.data !== undefined) return <StreamView key={stream.data.id} stream={stream.data} error={stream.error} />;
  return (
    <>
      <PageTitle title={name} />
      {stream.isPending ? (
        <Loading what="the stream" />
      ) : (
        <ProblemView error={stream.error} onRetry={() => void stream.refetch()} />
      )}
    </>
  );
}

function StreamView({ stream, error }: { stream: Stream; error: Error | null }) {
  const { name, spec } = stream;
  const me = useMe();
  const sample = useQuery(sampleQuery(name));
  const isPush = spec.source === 'push';
  return (
    <>
      <PageTitle title={name} actions={<StreamActions stream={stream} />} />
      {error !== null && <ProblemView error={error} />}
      <Stats>
        <Stat label="Source" value={sourceOf(stream)} note={stream.has_secrets ? 'with credentials' : undefined} />
        <Stat label="Event time" value={timeOf(stream)} note={`allowed delay ${delayOf(stream)}`} />
        <Stat label="Rate" value={formatRate(sample.data?.rate_per_s)} note="of event time, in the sample" />
        <Stat label="Rows looked at" value={formatCount(sample.data?.rows_seen)} note={badOf(sample.data)} />
      </Stats>
      <div className={classes.columns}>
        <div className={classes.beside}>
          <Panel
            title="Sample"
            note={sample.data && firstRows(sample.data.rows.length)}
            actions={
              <>
                <Button variant="default" loading={sample.isFetching} onClick={() => void sample.refetch()}>
                  Look again
                </Button>
                <CopyAs recipe={sampleStream(name)} what="look at this stream" />
              </>
            }
            flush
          >
            {sample.isPending && <Loading what="rows" lines={6} />}
            {sample.error !== null && <ProblemView title="The stream cannot be read" error={sample.error} />}
            {sample.data?.rows.length === 0 && (
              <Empty title="No row is there yet">{isPush && 'Post the first one below, or from a program.'}</Empty>
            )}
            {sample.data !== undefined && sample.data.rows.length > 0 && (
              <Rows label="Sample rows" columns={sample.data.columns} rows={sample.data.rows} height={ROWS_PX} />
            )}
          </Panel>
          {isPush && <PushPanel key={stream.version} stream={stream} mayPost={mayChange(me, stream)} />}
        </div>
        <div className={classes.beside}>
          {sample.data !== undefined && <BadRecords sample={sample.data} />}
          {sample.data !== undefined && <Skew sample={sample.data} />}
          <UsedBy stream={name} />
          <Panel
            title="Entry"
            note={`version ${formatCount(stream.version)}`}
            actions={<CopyAs recipe={createStream(name, spec)} what="register this stream" />}
            flush
          >
            <Code block className={classes.entry}>
              {JSON.stringify(spec, null, 2)}
            </Code>
          </Panel>
        </div>
      </div>
    </>
  );
}

const firstRows = (rows: number): string => (rows === 1 ? 'the first row' : `the first ${formatCount(rows)} rows`);
