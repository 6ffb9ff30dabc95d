/** Names with values, a row each, such as options of a generator. */
import { Button, Checkbox } from '@mantine/core';
import { useState } from 'react';
import { PlusIcon } from '../../../components/icons';
import type { Pair } from './draft';
import { errorsOfRows, type Errors } from './fieldErrors';
import { PairRow } from './PairRow';
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

export function Pairs({ field, what, pairs, errors, suggestions = [], isSecret = false, onChange }: PairsProps) {
  const { rows, rest } = errorsOfRows(
    errors,
    field,
    pairs.map(({ name }) => name),
  );
  const [isShown, setShown] = useState(false);
  const { added, add, adds, removed } = useRowFocus();
  return (
    <div className={classes.pairs}>
      {pairs.map((pair, place) => (
        <PairRow
          key={place}
          pair={pair}
          number={place + 1}
          what={what}
          error={rows[place]}
          suggestions={suggestions}
          isHidden={isSecret && !isShown}
          isNew={place === added}
          onChange={(parts) => onChange(pairs.map((one, at) => (at === place ? { ...one, ...parts } : one)))}
          onRemove={() => {
            onChange(pairs.filter((_, at) => at !== place));
            removed();
          }}
        />
      ))}
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
