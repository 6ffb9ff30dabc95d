/** Names with values, a row each, such as options of a generator. */
import { ActionIcon, Autocomplete, Button, Checkbox, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { PlusIcon, RemoveIcon } from '../../../components/icons';
import { textOf, type Pair } from './draft';
import { errorsOfRows, type Errors } from './fieldErrors';
import classes from './Pairs.module.css';
import { useRowFocus } from './useRowFocus';

interface PairsProps {
  /** The field that they are. */
  field: string;
  /** One of them, such as "option". */
  what: string;
  pairs: Pair[];
  errors: Errors;
  suggestions?: string[];
  /** Values are hidden while they are typed. */
  isSecret?: boolean;
  onChange: (pairs: Pair[]) => void;
}

/** Certificates and keys have lines, which a field of one line would join. */
const HAS_LINES = /\.(pem|key|certificate\.chain|certificates)$/;

export function Pairs({ field, what, pairs, errors, suggestions = [], isSecret = false, onChange }: PairsProps) {
  const { rows, rest } = errorsOfRows(
    errors,
    field,
    pairs.map(({ name }) => name),
  );
  const [isShown, setShown] = useState(false);
  const { added, add, adds, removed } = useRowFocus();
  const change = (place: number, parts: Partial<Pair>) =>
    onChange(pairs.map((pair, at) => (at === place ? { ...pair, ...parts } : pair)));
  return (
    <div className={classes.pairs}>
      {pairs.map(({ name, value }, place) => {
        const label = `Value of ${name === '' ? `${what} ${String(place + 1)}` : name}`;
        const typed = {
          value: textOf(value),
          'aria-label': label,
          placeholder: 'value',
          autoComplete: 'off',
          spellCheck: false,
          // Fields for passwords are for people who sign in: browsers would offer to keep what is in them.
          classNames: { input: isSecret && !isShown ? classes.hidden : undefined },
        };
        return (
          <div key={place} className={classes.pair}>
            <Autocomplete
              aria-label={`Name of ${what} ${String(place + 1)}`}
              placeholder="name"
              data={suggestions}
              value={name}
              error={rows[place]}
              autoFocus={place === added}
              openOnFocus={false}
              comboboxProps={{ withinPortal: false }}
              onChange={(next) => change(place, { name: next })}
            />
            {HAS_LINES.test(name) ? (
              <Textarea {...typed} rows={2} onChange={(event) => change(place, { value: event.currentTarget.value })} />
            ) : (
              <TextInput {...typed} onChange={(event) => change(place, { value: event.currentTarget.value })} />
            )}
            <ActionIcon
              variant="subtle"
              color="gray"
              size={36}
              aria-label={`Remove ${what} ${name === '' ? String(place + 1) : name}`}
              onClick={() => {
                onChange(pairs.filter((_, at) => at !== place));
                removed();
              }}
            >
              <RemoveIcon />
            </ActionIcon>
          </div>
        );
      })}
      {rest !== undefined && <p className={classes.error}>{rest}</p>}
      <div className={classes.below}>
        <Button
          ref={add}
          variant="default"
          leftSection={<PlusIcon />}
          onClick={() => {
            onChange([...pairs, { name: '', value: '' }]);
            adds(pairs.length);
          }}
        >
          Add {what === 'option' ? 'an' : 'a'} {what}
        </Button>
        {isSecret && pairs.length > 0 && (
          <Checkbox
            size="xs"
            label="Show values"
            checked={isShown}
            onChange={(event) => setShown(event.currentTarget.checked)}
          />
        )}
      </div>
    </div>
  );
}
