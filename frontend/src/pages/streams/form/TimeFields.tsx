/** When a row happened, and how late it may come. */
import { Autocomplete, SegmentedControl } from '@mantine/core';
import type { Column } from '../../../api/types';
import { timesAmong } from './columnTypes';
import { errorAt } from './fieldErrors';
import { ChoiceField, said, TextField } from './Field';
import { FieldGrid, Section } from './Section';
import type { Form } from './useEntry';

interface TimeFieldsProps {
  form: Form;
  /** The columns as far as they are known. */
  columns: Column[];
}

export function TimeFields({ form, columns }: TimeFieldsProps) {
  const { draft, errors } = form;
  return (
    <Section
      title="Event time"
      choice={
        <SegmentedControl
          size="xs"
          aria-label="What the event time of a row is"
          value={draft.isArrival ? 'arrival' : 'column'}
          onChange={(value) => form.change('time', { isArrival: value === 'arrival' })}
          data={[
            { value: 'column', label: 'A column has it' },
            { value: 'arrival', label: 'When the row arrives' },
          ]}
        />
      }
    >
      <FieldGrid>
        {!draft.isArrival && (
          <>
            <Autocomplete
              label="Column"
              placeholder="ts"
              data={timesAmong(columns)}
              value={draft.texts.time ?? ''}
              autoComplete="off"
              spellCheck={false}
              openOnFocus={false}
              comboboxProps={{ withinPortal: false }}
              onChange={(time) => form.set('time', time)}
              {...said('A timestamp, a date or a whole number', errorAt(errors, 'time'))}
            />
            <ChoiceField
              form={form}
              field="time_unit"
              label="Unit"
              otherwise="us"
              data={[
                { value: 's', label: 'seconds' },
                { value: 'ms', label: 'milliseconds' },
                { value: 'us', label: 'microseconds' },
              ]}
              hint="Of whole numbers, since 1970"
            />
          </>
        )}
        <LatenessFields form={form} />
      </FieldGrid>
    </Section>
  );
}

/** How late rows may come, and how long others wait for them. */
function LatenessFields({ form }: { form: Form }) {
  return (
    <>
      <TextField
        form={form}
        field="delay"
        label="Allowed delay"
        placeholder="0s"
        hint="Rows that come later than others by so much are still joined: 2s, 1.5 min"
      />
      <TextField
        form={form}
        field="idle"
        label="Idle after"
        placeholder="never"
        hint="After such a silence the other streams go on without it: 30s. What it brings later may be late"
      />
    </>
  );
}
