/** The columns of a stream: as its source has them, or a row of the form each. */
import { ActionIcon, Button, NativeSelect, SegmentedControl, TextInput } from '@mantine/core';
import { PlusIcon, RemoveIcon } from '../../../components/icons';
import classes from './ColumnsField.module.css';
import { decimalOf, NEW_DECIMAL, TYPES } from './columnTypes';
import { connectorOf, NEW_COLUMN, needsSchema, textOf, type Pair } from './draft';
import { errorAt, errorsOfRows, type Errors } from './fieldErrors';
import { Section } from './Section';
import sourceClasses from './SourceFields.module.css';
import type { Form } from './useEntry';
import { useRowFocus } from './useRowFocus';

const DECIMAL = 'decimal';

export function ColumnsField({ form }: { form: Form }) {
  const { draft, errors } = form;
  const isNeeded = needsSchema(connectorOf(draft.source));
  const error = errorAt(errors, 'schema');
  const set = (schema: Pair[] | null) => form.change('schema', { schema });
  return (
    <Section
      title="Columns"
      choice={
        isNeeded ? undefined : (
          <SegmentedControl
            size="xs"
            aria-label="Where the columns are told"
            value={draft.schema === null ? 'source' : 'here'}
            onChange={(value) => set(value === 'source' ? null : [{ ...NEW_COLUMN }])}
            data={[
              { value: 'source', label: 'As the first file has them' },
              { value: 'here', label: 'Given here' },
            ]}
          />
        )
      }
    >
      {draft.schema === null ? (
        <>
          {error !== undefined && <p className={classes.error}>{error}</p>}
          <p className={sourceClasses.words}>A test shows them. Give them yourself where they are not what you mean.</p>
        </>
      ) : (
        <Given columns={draft.schema} errors={errors} onChange={set} />
      )}
    </Section>
  );
}

function Given({
  columns,
  errors,
  onChange,
}: {
  columns: Pair[];
  errors: Errors;
  onChange: (columns: Pair[]) => void;
}) {
  const { rows, rest } = errorsOfRows(
    errors,
    'schema',
    columns.map(({ name }) => name),
  );
  const { added, add, adds, removed } = useRowFocus();
  const change = (place: number, parts: Partial<Pair>) =>
    onChange(columns.map((column, at) => (at === place ? { ...column, ...parts } : column)));
  return (
    <div className={classes.columns}>
      {columns.map(({ name, value }, place) => (
        <ColumnRow
          key={place}
          place={place}
          name={name}
          type={textOf(value)}
          error={rows[place]}
          onChange={(parts) => change(place, parts)}
          isNew={place === added}
          onRemove={() => {
            onChange(columns.filter((_, at) => at !== place));
            removed();
          }}
        />
      ))}
      {rest !== undefined && <p className={classes.error}>{rest}</p>}
      <Button
        ref={add}
        variant="default"
        className={classes.add}
        leftSection={<PlusIcon />}
        onClick={() => {
          onChange([...columns, { ...NEW_COLUMN }]);
          adds(columns.length);
        }}
      >
        Add a column
      </Button>
    </div>
  );
}

interface ColumnRowProps {
  place: number;
  name: string;
  type: string;
  error: string | undefined;
  isNew: boolean;
  onChange: (parts: Partial<Pair>) => void;
  onRemove: () => void;
}

function ColumnRow({ place, name, type, error, isNew, onChange, onRemove }: ColumnRowProps) {
  const called = name === '' ? `column ${String(place + 1)}` : name;
  const digits = decimalOf(type);
  const others = digits === null && !TYPES.includes(type) ? [type] : [];
  return (
    <div className={classes.column}>
      <TextInput
        aria-label={`Name of column ${String(place + 1)}`}
        placeholder="name"
        autoComplete="off"
        spellCheck={false}
        autoFocus={isNew}
        value={name}
        error={error}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
      />
      <div className={classes.type}>
        <NativeSelect
          aria-label={`Type of ${called}`}
          data={[...TYPES, DECIMAL, ...others]}
          value={digits === null ? type : DECIMAL}
          onChange={({ currentTarget: { value } }) => onChange({ value: value === DECIMAL ? NEW_DECIMAL : value })}
        />
        {digits !== null && (
          <TextInput
            aria-label={`Precision and scale of ${called}`}
            value={digits}
            onChange={(event) => onChange({ value: `decimal(${event.currentTarget.value})` })}
          />
        )}
      </div>
      <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove ${called}`} onClick={onRemove}>
        <RemoveIcon />
      </ActionIcon>
    </div>
  );
}
