/** What opens a Kafka cluster: it is written here and never shown again. */
import { SegmentedControl } from '@mantine/core';
import type { Pair } from './draft';
import type { Errors } from './fieldErrors';
import { Pairs } from './Pairs';
import { Section } from './Section';
import type { SecretsChoice } from './secrets';
import classes from './SourceFields.module.css';

interface CredentialsProps {
  /** The registered stream has some. */
  areKept: boolean;
  choice: SecretsChoice;
  pairs: Pair[];
  errors: Errors;
  onChange: (choice: SecretsChoice, pairs: Pair[]) => void;
}

const NAMES = [
  'sasl.username',
  'sasl.password',
  'sasl.jaas.config',
  'ssl.ca.pem',
  'ssl.certificate.pem',
  'ssl.key.pem',
  'ssl.key.password',
];

export function Credentials({ areKept, choice, pairs, errors, onChange }: CredentialsProps) {
  return (
    <Section
      title="Credentials"
      choice={
        areKept ? (
          <SegmentedControl
            size="xs"
            aria-label="What becomes of the credentials that are kept"
            value={choice}
            onChange={(value) => onChange(value, pairs)}
            data={[
              { value: 'keep', label: 'Keep them' },
              { value: 'replace', label: 'Replace them' },
              { value: 'remove', label: 'Remove them' },
            ]}
          />
        ) : undefined
      }
    >
      <p className={classes.words}>{wordsFor(areKept, choice)}</p>
      {choice === 'replace' && (
        <Pairs
          field="secrets"
          what="credential"
          pairs={pairs}
          errors={errors}
          suggestions={NAMES}
          isSecret
          onChange={(next) => onChange(choice, next)}
        />
      )}
    </Section>
  );
}

function wordsFor(areKept: boolean, choice: SecretsChoice): string {
  if (choice === 'remove') return 'The stream will have no credentials.';
  if (choice === 'keep') return 'There are some. A test here goes without them, because they are never read back.';
  return areKept
    ? 'All of them: those that are not written here are gone.'
    : 'Settings of the Kafka client that are encrypted and never shown again.';
}
