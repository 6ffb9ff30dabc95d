/** A new join: the query, its mistakes while it is written, a few of its rows, how it would run, what it would cost. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { streamsQuery } from '../../api/queries';
import { Empty } from '../../components/Empty';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { useMay, useMe } from '../../shell/useMay';
import { CreateForm } from './CreateForm';
import { fieldsOfOperator, isTouched, operatorOf, withFields } from './draft';
import { Explained } from './Explained';
import classes from './NewJoinPage.module.css';
import { Preview } from './Preview';
import { QueryPanel } from './QueryPanel';
import { Settings } from './Settings';
import { StreamColumns } from './StreamColumns';
import { useChecked } from './useChecked';
import { useDraft } from './useDraft';

export function NewJoinPage() {
  const me = useMe();
  const mayCreate = useMay('operator');
  const streams = useQuery(streamsQuery);
  const all = streams.data?.data ?? [];
  const names = useMemo(() => streams.data?.data.map((stream) => stream.name) ?? [], [streams.data]);
  const { draft, onEdit, onDiscard } = useDraft(me?.id ?? me?.name ?? '');
  const checked = useChecked(draft, names, mayCreate);
  const { body, isRight, isReady, mistakes, blockers, columns } = checked;
  const setFields = (fields: Record<string, string>) => onEdit((before) => withFields(before, fields));
  return (
    <>
      <PageTitle
        title="New join"
        actions={
          isTouched(draft) && (
            <Button variant="default" onClick={onDiscard}>
              Discard draft
            </Button>
          )
        }
      />
      {checked.isWritten && checked.error !== null && <ProblemView error={checked.error} />}
      <div className={classes.columns}>
        <div className={classes.column}>
          <QueryPanel draft={draft} checked={checked} streams={all} onEdit={onEdit} />
          {/* What else is set has no part in which rows there are. */}
          <Preview
            draft={isRight ? { query: body.query, ...(body.results && { results: body.results }) } : null}
            isReady={isReady}
          />
          <Settings draft={draft} mistakes={mistakes.at} onField={(path, text) => setFields({ [path]: text })} />
          <CreateForm
            body={body}
            name={draft.name}
            start={draft.start}
            blockers={blockers}
            onName={(name) => onEdit((before) => ({ ...before, name }))}
            onStart={(start) => onEdit((before) => ({ ...before, start }))}
            onCreated={onDiscard}
          />
          <Panel title="Explain" note="from a sample of the streams; nothing is started">
            {isRight ? (
              <Explained
                draft={body}
                isReady={isReady}
                chosen={operatorOf(draft)}
                onChoose={(operator) => setFields(fieldsOfOperator(operator))}
                onFields={setFields}
              />
            ) : (
              <Empty title="Nothing to explain yet">The plan appears here once the query is valid.</Empty>
            )}
          </Panel>
        </div>
        <StreamColumns names={names} columns={columns} isPending={streams.isPending} />
      </div>
    </>
  );
}
