/** A name with its value, to be typed. */
import { ActionIcon, Autocomplete, Textarea, TextInput } from '@mantine/core';
import { RemoveIcon } from '../../../components/icons';
import { textOf, type Pair } from './draft';
import classes from './Pairs.module.css';

interface PairRowProps {
  pair: Pair;
  /** Its place among the others, from 1. */
  number: number;
  /** What it is, such as "option". */
  what: string;
  error: string | undefined;
  suggestions: string[];
  isHidden: boolean;
  /** It takes the focus. */
  isNew: boolean;
  onChange: (parts: Partial<Pair>) => void;
  onRemove: () => void;
}

/** Certificates and keys have lines, which a field of one line would join. */
const HAS_LINES = /\.(pem|key|certificate\.chain|certificates)$/;

export function PairRow(props: PairRowProps) {
  const { pair, number, what, error, suggestions, isHidden, isNew, onChange, onRemove } = props;
  const { name, value } = pair;
  const typed = {
    value: textOf(value),
    'aria-label': `Value of ${name === '' ? `${what} ${String(number)}` : name}`,
    placeholder: 'value',
    autoComplete: 'off',
    spellCheck: false,
    // Fields for passwords are for people who sign in: browsers would offer to keep what is in them.
    classNames: { input: isHidden ? classes.hidden : undefined },
  };
  return (
    <div className={classes.pair}>
      <Autocomplete
        aria-label={`Name of ${what} ${String(number)}`}
        placeholder="name"
        data={suggestions}
        value={name}
        error={error}
        autoFocus={isNew}
        openOnFocus={false}
        comboboxProps={{ withinPortal: false }}
        onChange={(next) => onChange({ name: next })}
      />
      {HAS_LINES.test(name) ? (
        <Textarea {...typed} rows={2} onChange={(event) => onChange({ value: event.currentTarget.value })} />
      ) : (
        <TextInput {...typed} onChange={(event) => onChange({ value: event.currentTarget.value })} />
      )}
      <ActionIcon
        variant="subtle"
        color="gray"
        size={36}
        aria-label={`Remove ${what} ${name === '' ? String(number) : name}`}
        onClick={onRemove}
      >
        <RemoveIcon />
      </ActionIcon>
    </div>
  );
}
