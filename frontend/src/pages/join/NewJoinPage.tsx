/** A new join: the query, its mistakes while it is written, how it would run, and what each operator would cost. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { streamsQuery, validateQuery } from '../../api/queries';
import type { Draft } from '../../api/types';
import { Empty } from '../../components/Empty';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { squigglesOf } from '../../editor/offsets';
import { SqlEditor } from '../../editor/SqlEditor';
import { CreateForm } from './CreateForm';
import { Explained } from './Explained';
import classes from './NewJoinPage.module.css';
import { StreamColumns } from './StreamColumns';
import { useColumns } from './useColumns';
import { Verdict } from './Verdict';

const TYPED_MS = 350;

const AT_FIRST = `SELECT ONLINE r.id, s.id
FROM r, s
WHERE r.k = s.k
WITHIN 10 SECONDS`;

export function NewJoinPage() {
  const streams = useQuery(streamsQuery);
  const names = useMemo(() => streams.data?.data.map((stream) => stream.name) ?? [], [streams.data]);
  const [query, setQuery] = useState(AT_FIRST);
  const [operator, setOperator] = useState('auto');
  const [settled] = useDebouncedValue(query, TYPED_MS);
  const draft = useMemo((): Draft => ({ query: settled, operator: { name: operator } }), [settled, operator]);
  const checked = useQuery({ ...validateQuery(draft), placeholderData: (before) => before });
  const columns = useColumns(settled, names);
  const squiggles = useMemo(
    () => (checked.isPlaceholderData ? [] : squigglesOf(settled, checked.data?.diagnostics ?? [])),
    [settled, checked.data, checked.isPlaceholderData],
  );
  const isValid = checked.data?.valid === true && settled === query;
  return (
    <>
      <PageTitle title="New join" />
      {checked.error !== null && <ProblemView error={checked.error} />}
      <div className={classes.columns}>
        <div className={classes.column}>
          <Panel title="Query" note="mistakes are underlined while you type; Ctrl-Space completes" flush>
            <SqlEditor label="Query" value={query} onChange={setQuery} squiggles={squiggles} columns={columns} />
            <Verdict diagnostics={checked.data} isChecking={checked.isFetching} />
          </Panel>
          <CreateForm draft={draft} isValid={isValid} />
          <Panel title="Explain" note="from a sample of the streams; nothing is started">
            {checked.data?.valid === true ? (
              <Explained draft={draft} chosen={operator} onChoose={setOperator} />
            ) : (
              <Empty title="Nothing to explain yet">As soon as the query is right, its plan stands here.</Empty>
            )}
          </Panel>
        </div>
        <StreamColumns names={names} columns={columns} isPending={streams.isPending} />
      </div>
    </>
  );
}
