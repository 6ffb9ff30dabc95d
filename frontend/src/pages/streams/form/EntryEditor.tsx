/** A stream's entry: written as a form or as JSON, tested before anything is kept, and then sent. */
import { SegmentedControl } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { useEffect, useRef, type FormEvent, type ReactNode } from 'react';
import type { Spec } from '../../../api/types';
import { Panel } from '../../../components/Panel';
import { ProblemView } from '../../../components/ProblemView';
import classes from './EntryEditor.module.css';
import { EntryFields } from './EntryFields';
import { EntryFoot, type Saving } from './EntryFoot';
import type { Secrets } from './secrets';
import { TestedEntry } from './TestedEntry';
import { useCredentials } from './useCredentials';
import { useEntry, type Entry } from './useEntry';
import { useMistakeFocus } from './useMistakeFocus';
import { useSending } from './useSending';

/** What a refusal can be answered with. */
export interface Refused {
  error: Error;
  spec: Spec;
  again: () => void;
}

interface EntryEditorProps extends Saving {
  first: Spec;
  /** The registered stream has credentials. */
  hasSecrets?: boolean;
  /** Fields before the entry, given what is wrong with the name. */
  head?: (wrong: string | undefined, onTyped: () => void) => ReactNode;
  /** Somebody has picked a file that is already there. */
  onFile?: (name: string) => void;
  save: (spec: Spec, secrets: Secrets) => Promise<void>;
  /** Of a refusal that has more to say than its words; null for those that have not. */
  onRefused?: (refused: Refused) => ReactNode;
}

export function EntryEditor(props: EntryEditorProps) {
  const { first, hasSecrets = false, head, onFile, save, onRefused, ...foot } = props;
  const entry = useEntry(first);
  const { spec } = entry;
  const credentials = useCredentials(hasSecrets, spec);
  const { form, goToMistake } = useMistakeFocus();
  const results = useRef<HTMLDivElement>(null);
  const problem = useRef<HTMLDivElement>(null);
  const onTested = () => seen(results.current);
  const sending = useSending({ entry, credentials, hasName: head !== undefined, save, goToMistake, onTested });
  const { saving, isLeft, tested, isTesting, look, runTest, runSave } = sending;

  useEffect(() => {
    if (isLeft) problem.current?.scrollIntoView({ block: 'nearest' });
  }, [isLeft]);

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
  return (
    <div className={classes.columns}>
      <form ref={form} noValidate onSubmit={submit}>
        <Panel title="Entry" actions={<ViewSwitch entry={entry} />}>
          <div className={classes.parts}>
            {head?.(entry.errors.name, () => entry.forget('name'))}
            <EntryFields
              entry={entry}
              credentials={credentials}
              sample={tested?.sample ?? null}
              onFile={(file) => onFile?.(file)}
            />
          </div>
          <div ref={problem} className={classes.problem}>
            {answer ?? (isLeft && <ProblemView error={saving.error} />)}
          </div>
          <EntryFoot spec={spec} secrets={credentials.secrets} isSaving={saving.isPending} onTest={runTest} {...foot} />
        </Panel>
      </form>
      <div ref={results} className={classes.results}>
        <TestedEntry entry={entry} tested={tested} isTesting={isTesting} onLook={look} />
      </div>
    </div>
  );
}

function ViewSwitch({ entry }: { entry: Entry }) {
  return (
    <SegmentedControl
      size="xs"
      aria-label="How the entry is written"
      value={entry.view}
      onChange={(view) => entry.show(view)}
      data={[
        { value: 'form', label: 'Form', disabled: entry.spec === null },
        { value: 'json', label: 'JSON' },
      ]}
    />
  );
}

/** Results that are out of sight, as below the form on a narrow page, are brought into it. */
function seen(element: HTMLElement | null): void {
  if (element === null) return;
  const { top } = element.getBoundingClientRect();
  if (top > window.innerHeight * 0.8) element.scrollIntoView({ block: 'start' });
}
