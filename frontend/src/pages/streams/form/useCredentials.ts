/** Credentials as they are typed, and what becomes of those that are kept. */
import { useState } from 'react';
import type { Spec } from '../../../api/types';
import { connectorOf, type Pair } from './draft';
import { NO_ERRORS } from './fieldErrors';
import { mistakesInSecrets, secretsOf, type SecretsChoice } from './secrets';

/** @param areKept the registered stream has some. */
export function useCredentials(areKept: boolean, spec: Spec | null) {
  const [choice, setChoice] = useState<SecretsChoice>(areKept ? 'keep' : 'replace');
  const [pairs, setPairs] = useState<Pair[]>([]);
  const hasSome = connectorOf(spec?.source) === 'kafka';
  return {
    areKept,
    choice,
    pairs,
    /** Whether a stream like this has any. */
    hasSome,
    secrets: hasSome ? secretsOf(choice, pairs) : areKept ? {} : undefined,
    /** What can be told to be wrong without asking. */
    check: () => (hasSome ? mistakesInSecrets(areKept, choice, pairs) : NO_ERRORS),
    change: (chosen: SecretsChoice, given: Pair[]) => {
      setChoice(chosen);
      setPairs(given);
    },
  };
}

export type TypedCredentials = ReturnType<typeof useCredentials>;
