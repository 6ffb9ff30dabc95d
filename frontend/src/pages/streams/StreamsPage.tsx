/** The registered streams. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { streamsQuery } from '../../api/queries';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { useMay } from '../../shell/useMay';
import { StreamsTable } from './StreamsTable';

export function StreamsPage() {
  const streams = useQuery(streamsQuery);
  const mayRegister = useMay('operator');
  return (
    <>
      <PageTitle
        title="Streams"
        actions={
          mayRegister && (
            <Button component={Link} to="/streams/new">
              Register a stream
            </Button>
          )
        }
      />
      {streams.error !== null && <ProblemView error={streams.error} />}
      <Panel title="Registered streams" note={streams.data && formatCount(streams.data.data.length)} flush>
        {streams.data === undefined ? (
          streams.isPending && <Loading what="streams" />
        ) : streams.data.data.length === 0 ? (
          <Empty title="No stream yet">
            A stream says where rows come from and what they are. Register your own, or start a demo on the overview: it
            brings its own.
            {mayRegister && (
              <div>
                <Button component={Link} to="/streams/new" variant="default" mt="sm">
                  Register a stream
                </Button>
              </div>
            )}
          </Empty>
        ) : (
          <StreamsTable streams={streams.data.data} />
        )}
      </Panel>
    </>
  );
}
