/** Credentials are written and never read: what is to become of those that are kept. */
import type { StreamIn } from '../../../api/types';
import { mappingOf, mistakesOfPairs, textOf, type Pair } from './draft';

/** Undefined keeps what is there, and an empty mapping removes it. */
export type Secrets = StreamIn['secrets'];

export type SecretsChoice = 'keep' | 'replace' | 'remove';

export function secretsOf(choice: SecretsChoice, pairs: Pair[]): Secrets {
  if (choice === 'keep') return undefined;
  if (choice === 'remove') return {};
  const given = mappingOf('secrets', pairs);
  return Object.keys(given).length === 0
    ? undefined
    : Object.fromEntries(Object.entries(given).map(([name, value]) => [name, textOf(value)]));
}

/** What can be told without the platform, by the field's name. */
export function mistakesInSecrets(areKept: boolean, choice: SecretsChoice, pairs: Pair[]): Record<string, string> {
  if (choice !== 'replace') return {};
  const mistakes = mistakesOfPairs('secrets', pairs);
  // To lose them by leaving fields empty is nothing that anybody means.
  if (areKept && secretsOf(choice, pairs) === undefined) mistakes.secrets = 'Write at least one, or remove them';
  return mistakes;
}
