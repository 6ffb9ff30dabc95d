/** What happened to a job, the newest first; older pages on demand. */
import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { jobEventPagesQuery } from '../../api/queries';
import { EventList } from '../../components/EventList';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';

export function Events({ id }: { id: string }) {
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    jobEventPagesQuery(id),
  );
  return (
    <Panel title="Events" note="newest first" flush>
      {error !== null && <ProblemView error={error} />}
      {data === undefined ? (
        isPending && <Loading what="events" />
      ) : (
        <EventList events={data.pages.flatMap((page) => page.data)} />
      )}
      {hasNextPage && (
        <Button variant="subtle" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more
        </Button>
      )}
    </Panel>
  );
}
