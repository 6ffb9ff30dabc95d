/** Questions that were kept: each is asked again with one press. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { jobsQuery, savedQueriesQuery } from '../../api/queries';
import type { SavedQuery } from '../../api/types';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { save } from '../../download';
import { formatCount } from '../../format';
import { ask, exported } from '../../results/ask';
import { CutNote } from '../../results/CutNote';
import type { FileFormat } from '../../results/formats';
import { useMay } from '../../shell/useMay';
import { AskedAgain } from './AskedAgain';
import { firstRows } from './firstRows';
import { ForgetDialog } from './ForgetDialog';
import { SavedTable } from './SavedTable';
import { questionOf } from './words';

export function QueriesPage() {
  const saved = useQuery(savedQueriesQuery);
  const jobs = useQuery(jobsQuery);
  const [forgetting, setForgetting] = useState<SavedQuery | null>(null);
  const asked = useMutation({ mutationFn: (kept: SavedQuery) => ask(firstRows(questionOf(kept))) });
  const file = useMutation({
    mutationFn: ({ kept, format }: { kept: SavedQuery; format: FileFormat }) => exported(questionOf(kept), format),
    onSuccess: ({ blob }, { kept, format }) => save(blob, `${kept.name}.${format}`),
  });
  const all = saved.data?.data ?? [];
  return (
    <>
      <PageTitle title="Saved queries" />
      {saved.error !== null && <ProblemView error={saved.error} onRetry={() => void saved.refetch()} />}
      <Panel
        title="All saved queries"
        note={
          saved.data &&
          `${saved.data.has_more ? 'the newest ' : ''}${formatCount(all.length)}, newest first; everybody sees them`
        }
      >
        {saved.data === undefined ? (
          saved.isPending && <Loading what="saved queries" />
        ) : all.length === 0 ? (
          <NothingSaved />
        ) : (
          <SavedTable
            saved={all}
            jobs={jobs.data?.data}
            asking={asked.isPending ? asked.variables.id : null}
            writing={file.isPending ? file.variables.kept.id : null}
            onAsk={(kept) => asked.mutate(kept)}
            onExport={(kept, format) => file.mutate({ kept, format })}
            onForget={setForgetting}
          />
        )}
        {file.error !== null && <ProblemView error={file.error} />}
      </Panel>
      {file.data?.cut && <CutNote file={`${file.variables.kept.name}.${file.variables.format}`} cut={file.data.cut} />}
      {asked.variables !== undefined && !asked.isIdle && (
        <AskedAgain
          kept={asked.variables}
          answer={asked.data}
          error={asked.error}
          isAsking={asked.isPending}
          onAsk={asked.mutate}
        />
      )}
      {forgetting !== null && (
        <ForgetDialog
          kept={forgetting}
          onForgotten={() => asked.variables?.id === forgetting.id && asked.reset()}
          onClose={() => setForgetting(null)}
        />
      )}
    </>
  );
}

function NothingSaved() {
  return (
    <Empty title="No query is saved yet">
      {useMay('operator')
        ? 'Ask the kept results of a job, on its tab Ask, and save the question there.'
        : 'Who has the role operator can save what they ask the results of a job; everybody can ask it again here.'}
    </Empty>
  );
}
