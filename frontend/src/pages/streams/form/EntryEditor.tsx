/** A stream's entry: written as a form or as JSON, tested before anything is kept, and then sent. */
import { Button, SegmentedControl } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react';
import { Link } from 'react-router';
import type { Spec } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { Panel } from '../../../components/Panel';
import { ProblemView } from '../../../components/ProblemView';
import { testStream, type Recipe } from '../../../recipes';
import { Credentials } from './Credentials';
import { connectorOf, fieldsOf, schemaOf, type Pair } from './draft';
import classes from './EntryEditor.module.css';
import { errorsOf, isAllShown, NO_ERRORS, type Errors } from './fieldErrors';
import { FormView } from './FormView';
import { JsonView } from './JsonView';
import { mistakesInSecrets, secretsOf, type Secrets, type SecretsChoice } from './secrets';
import { TestResult } from './TestResult';
import { useEntry } from './useEntry';
import { useTest } from './useTest';

/** What a refusal can be answered with. */
export interface Refused {
  error: Error;
  spec: Spec;
  again: () => void;
}

interface EntryEditorProps {
  first: Spec;
  /** The registered stream has credentials. */
  hasSecrets?: boolean;
  /** Fields before the entry, given what is wrong with the name. */
  head?: (wrong: string | undefined, onTyped: () => void) => ReactNode;
  /** A file was chosen from those there are. */
  onFile?: (name: string) => void;
  save: (spec: Spec, secrets: Secrets) => Promise<void>;
  saveLabel: string;
  recipe: (spec: Spec, secrets: Secrets) => Recipe;
  what: string;
  /** Where one gets without saving. */
  back: string;
  /** Of a refusal that has more to say than its words; null for those that have not. */
  onRefused?: (refused: Refused) => ReactNode;
}

export function EntryEditor(props: EntryEditorProps) {
  const { first, hasSecrets = false, head, onFile, save, saveLabel, recipe, what, back, onRefused } = props;
  const entry = useEntry(first);
  const [choice, setChoice] = useState<SecretsChoice>(hasSecrets ? 'keep' : 'replace');
  const [pairs, setPairs] = useState<Pair[]>([]);
  const { test, tested, isPending: isTesting } = useTest();
  const saving = useMutation({
    mutationFn: ({ spec, secrets }: { spec: Spec; secrets: Secrets }) => save(spec, secrets),
    gcTime: 0,
  });
  const form = useRef<HTMLFormElement>(null);
  const results = useRef<HTMLDivElement>(null);
  const problem = useRef<HTMLDivElement>(null);
  const now = useRef('');
  const [goes, setGoes] = useState(0);
  const { spec, errors } = entry;
  /** A new stream has a name, which may be another's. */
  const taken = head === undefined ? undefined : 'name';
  const isKafka = connectorOf(spec?.source) === 'kafka';
  const secrets = isKafka ? secretsOf(choice, pairs) : hasSecrets ? {} : undefined;

  const isUnread = spec === null;
  const shown = entry.view === 'form' ? fieldsOf(entry.form.draft) : Object.keys(spec ?? {});
  const isLeft = saving.error !== null && !isAllShown(errorsOf(saving.error, taken), [...shown, 'name', 'secrets']);

  useEffect(() => {
    if (goes > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [goes]);

  useEffect(() => {
    now.current = JSON.stringify(spec);
  }, [spec]);

  useEffect(() => {
    if (isLeft) problem.current?.scrollIntoView({ block: 'nearest' });
  }, [isLeft]);

  const refuse = (found: Errors, mayGo: boolean) => {
    entry.refuse(found);
    if (mayGo) setGoes((before) => before + 1);
  };
  /** The entry, if nothing is wrong with it that can be told here. */
  const checked = (): Spec | null => {
    const mistakes = { ...entry.check(), ...(isKafka ? mistakesInSecrets(hasSecrets, choice, pairs) : NO_ERRORS) };
    refuse(mistakes, Object.keys(mistakes).length > 0);
    return Object.keys(mistakes).length === 0 ? spec : null;
  };
  const runTest = () => {
    const asked = checked();
    if (asked !== null) look(asked);
  };
  const look = (asked: Spec) => {
    saving.reset();
    test({ spec: asked, secrets: choice === 'replace' ? secrets : undefined }, (error) => {
      // What was changed meanwhile is not what was refused, and who goes on typing is left where they are.
      if (error !== null && now.current === JSON.stringify(asked)) refuse(errorsOf(error), !isTyping());
      seen(results.current);
    });
  };
  const runSave = () => {
    const asked = checked();
    if (asked === null) return;
    saving.mutate({ spec: asked, secrets }, { onError: (error) => refuse(errorsOf(error, taken), true) });
  };
  useWindowEvent('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    // In a field it would also send the form.
    event.preventDefault();
    runTest();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    runSave();
  };
  const answer =
    saving.error !== null && spec !== null ? onRefused?.({ error: saving.error, spec, again: runSave }) : undefined;
  const credentials = isKafka && (
    <Credentials
      areKept={hasSecrets}
      choice={choice}
      pairs={pairs}
      errors={errors}
      onChange={(chosen, given) => {
        setChoice(chosen);
        setPairs(given);
        entry.forget('secrets');
      }}
    />
  );
  return (
    <div className={classes.columns}>
      <form ref={form} noValidate onSubmit={submit}>
        <Panel
          title="Entry"
          actions={
            <SegmentedControl
              size="xs"
              aria-label="How the entry is written"
              value={entry.view}
              onChange={(view) => entry.show(view)}
              data={[
                { value: 'form', label: 'Form', disabled: isUnread },
                { value: 'json', label: 'JSON' },
              ]}
            />
          }
        >
          <div className={classes.parts}>
            {head?.(errors.name, () => entry.forget('name'))}
            {entry.view === 'form' ? (
              <FormView
                form={entry.form}
                sample={tested?.sample ?? null}
                credentials={credentials}
                onFile={(file) => onFile?.(file)}
              />
            ) : (
              <>
                <JsonView text={entry.text} reading={entry.reading} errors={errors} onChange={entry.type} />
                {credentials}
              </>
            )}
          </div>
          <div ref={problem} className={classes.problem}>
            {answer ?? (isLeft && <ProblemView error={saving.error} />)}
          </div>
          <div className={classes.foot}>
            <Button type="submit" size="sm" loading={saving.isPending} disabled={isUnread}>
              {saveLabel}
            </Button>
            {spec !== null && <CopyAs recipe={recipe(spec, secrets)} what={what} />}
            <Button
              variant="default"
              size="sm"
              disabled={isUnread}
              onClick={runTest}
              rightSection={<span className={classes.keys}>Ctrl Enter</span>}
            >
              Test
            </Button>
            {spec !== null && <CopyAs recipe={testStream(spec, secrets ?? undefined)} what="test this entry" />}
            <Button component={Link} to={back} variant="subtle" color="gray" size="sm" className={classes.back}>
              Cancel
            </Button>
          </div>
        </Panel>
      </form>
      <div ref={results} className={classes.results}>
        <TestResult
          tested={tested}
          isPending={isTesting}
          isOld={tested !== null && JSON.stringify(tested.spec) !== JSON.stringify(spec)}
          onUse={
            spec !== null && connectorOf(spec.source) === 'files' && spec.schema === undefined
              ? (columns) =>
                  entry.replace({
                    ...spec,
                    schema: Object.fromEntries(schemaOf(columns).map(({ name, value }) => [name, value])),
                  })
              : undefined
          }
          onUseTime={
            spec !== null && spec.time === undefined
              ? ({ name, time_unit }) => {
                  const timed = { ...spec, time: name, ...(time_unit != null && { time_unit }) };
                  entry.replace(timed);
                  entry.forget('time');
                  look(timed);
                }
              : undefined
          }
        />
      </div>
    </div>
  );
}

const isTyping = (): boolean => document.activeElement?.matches('input, textarea, select, [contenteditable]') === true;

/** Results that are out of sight, as below the form on a narrow page, are brought into it. */
function seen(element: HTMLElement | null): void {
  if (element === null) return;
  const { top } = element.getBoundingClientRect();
  if (top > window.innerHeight * 0.8) element.scrollIntoView({ block: 'start' });
}
