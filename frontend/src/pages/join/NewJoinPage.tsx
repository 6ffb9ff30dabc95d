/** A new join: the query, its mistakes while it is written, a few of its rows, how it would run, what it would cost. */
import { Button } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { streamsQuery, validateQuery } from '../../api/queries';
import { Empty } from '../../components/Empty';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { SqlEditor } from '../../editor/SqlEditor';
import { useSquiggles } from '../../editor/useSquiggles';
import { useMay, useMe } from '../../shell/useMay';
import { OPERATOR_NAME } from '../job/change/fields';
import { pointerOf } from '../job/change/form';
import { mistakesOf } from '../job/change/mistakes';
import { blockersOf } from './blockers';
import { CreateForm } from './CreateForm';
import { bodyOf, isTouched, operatorOf, withField } from './draft';
import { Explained } from './Explained';
import { Growth } from './Growth';
import classes from './NewJoinPage.module.css';
import { Preview } from './Preview';
import { sectionsOf } from './sections';
import { Settings } from './Settings';
import { StreamColumns } from './StreamColumns';
import { Templates } from './Templates';
import { useColumns } from './useColumns';
import { useDraft } from './useDraft';
import { Verdict } from './Verdict';

const TYPED_MS = 350;
const ORDERING = 'operator.ordering';

export function NewJoinPage() {
  const me = useMe();
  const mayCreate = useMay('operator');
  const streams = useQuery(streamsQuery);
  const all = streams.data?.data ?? [];
  const names = useMemo(() => streams.data?.data.map((stream) => stream.name) ?? [], [streams.data]);
  const { draft, onEdit, onDiscard } = useDraft(me?.id ?? me?.name ?? '');
  const { query, fields: texts } = draft;
  const typed = useMemo(() => ({ query, fields: texts }), [query, texts]);
  const [settled] = useDebouncedValue(typed, TYPED_MS);
  const body = useMemo(() => bodyOf(settled), [settled]);
  const isWritten = query.trim() !== '';
  const isAsked = settled.query.trim() !== '';
  const checked = useQuery({ ...validateQuery(body), enabled: isAsked, placeholderData: (before) => before });
  const isOpen = settled !== typed || checked.isPending || checked.isPlaceholderData;
  const columns = useColumns(settled.query, names);

  const fields = sectionsOf(draft).flatMap((section) => section.fields);
  const pointers = [...fields.map(({ path }) => pointerOf(path)), pointerOf(OPERATOR_NAME)];
  const diagnostics = isWritten && isAsked ? checked.data : undefined;
  const mistakes = mistakesOf(diagnostics, null, pointers);
  const squiggles = useSquiggles(settled.query, isOpen ? [] : mistakes.ofQuery);
  const isRight = diagnostics?.valid === true;
  const blockers = blockersOf({
    query,
    name: draft.name,
    mayCreate,
    isChecking: isOpen && checked.error === null,
    isValid: diagnostics?.valid,
    mistakesInQuery: mistakes.ofQuery.length + mistakes.elsewhere.length,
    wrongFields: fields.filter(({ path }) => mistakes.at[pointerOf(path)] !== undefined).map(({ label }) => label),
  });
  const setField = (path: string, text: string) => onEdit((before) => withField(before, path, text));
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
      {isWritten && checked.error !== null && <ProblemView error={checked.error} />}
      <div className={classes.columns}>
        <div className={classes.column}>
          <Panel title="Query" note="mistakes are underlined while you type; Ctrl-Space completes" flush>
            {all.length > 0 && (
              <Templates
                streams={all}
                onFill={(filled) =>
                  onEdit((before) => withField({ ...before, query: filled.query }, ORDERING, filled.ordering))
                }
              />
            )}
            <SqlEditor
              label="Query"
              value={query}
              onChange={(text) => onEdit((before) => (text === before.query ? before : { ...before, query: text }))}
              squiggles={squiggles}
              columns={columns}
            />
            {isWritten && (
              <Verdict
                diagnostics={diagnostics && { ...diagnostics, diagnostics: mistakes.ofQuery }}
                isChecking={checked.isFetching}
              />
            )}
            {mistakes.elsewhere.map((mistake) => (
              <p key={mistake} className={classes.mistake}>
                {mistake}
              </p>
            ))}
            {isRight && <Growth draft={body} isReady={!isOpen} />}
          </Panel>
          {/* What else is set has no part in which rows there are. */}
          <Preview
            draft={isRight ? { query: body.query, ...(body.results && { results: body.results }) } : null}
            isReady={!isOpen}
          />
          <Settings draft={draft} mistakes={mistakes.at} onField={setField} />
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
                isReady={!isOpen}
                chosen={operatorOf(draft)}
                onChoose={(operator) => setField(OPERATOR_NAME, operator === 'auto' ? '' : operator)}
              />
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
