/** What a made-up stream is made of. */
import { useQuery } from '@tanstack/react-query';
import { generatorsQuery } from '../../../api/queries';
import { ProblemView } from '../../../components/ProblemView';
import { ChoiceField, TextField } from './Field';
import { grouped } from './kinds';
import { Pairs } from './Pairs';
import { FieldGrid, Section } from './Section';
import classes from './SourceFields.module.css';
import type { Form } from './useEntry';

export function GeneratorFields({ form }: { form: Form }) {
  const generators = useQuery(generatorsQuery);
  const kind = form.draft.texts.kind ?? '';
  const made = generators.data?.find((one) => one.kind === kind);
  return (
    <>
      {generators.error !== null && <ProblemView error={generators.error} />}
      <FieldGrid inPairs>
        <ChoiceField form={form} field="kind" label="Kind" data={grouped(generators.data ?? [], kind)} />
        <TextField form={form} field="rate" label="Rate" placeholder="10000/s" hint="Rows a second, such as 1000/s" />
      </FieldGrid>
      {made !== undefined && (
        <p className={classes.columns}>{made.columns.map(({ name, type }) => `${name} ${type}`).join(', ')}</p>
      )}
      <FieldGrid>
        <TextField form={form} field="rows" label="Ends after" placeholder="no end" inputMode="numeric" hint="Rows" />
        <TextField
          form={form}
          field="seed"
          label="Seed"
          placeholder="1"
          inputMode="numeric"
          hint="Another one gives other values"
        />
        <ChoiceField
          form={form}
          field="begin"
          label="Times begin"
          data={[
            { value: '', label: 'on 2026-01-01' },
            { value: 'now', label: 'when the job does' },
          ]}
        />
      </FieldGrid>
      <Section title="Options of this kind">
        <Pairs
          field="options"
          what="option"
          pairs={form.draft.options}
          errors={form.errors}
          onChange={(options) => form.change('options', { options })}
        />
      </Section>
    </>
  );
}
