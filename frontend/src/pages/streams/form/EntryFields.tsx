/** The entry's fields, or its JSON; credentials stand in both, as they are no part of it. */
import type { Sample } from '../../../api/types';
import { Credentials } from './Credentials';
import { FormView } from './FormView';
import { JsonView } from './JsonView';
import type { TypedCredentials } from './useCredentials';
import type { Entry } from './useEntry';

interface EntryFieldsProps {
  entry: Entry;
  credentials: TypedCredentials;
  /** What a test found. */
  sample: Sample | null;
  /** Somebody has picked a file that is already there. */
  onFile: (name: string) => void;
}

export function EntryFields({ entry, credentials, sample, onFile }: EntryFieldsProps) {
  const { areKept, choice, pairs, hasSome, change } = credentials;
  const secret = hasSome && (
    <Credentials
      areKept={areKept}
      choice={choice}
      pairs={pairs}
      errors={entry.errors}
      onChange={(chosen, given) => {
        change(chosen, given);
        entry.forget('secrets');
      }}
    />
  );
  return entry.view === 'form' ? (
    <FormView form={entry.form} sample={sample} credentials={secret} onFile={onFile} />
  ) : (
    <>
      <JsonView text={entry.text} reading={entry.reading} errors={entry.errors} onChange={entry.type} />
      {secret}
    </>
  );
}
