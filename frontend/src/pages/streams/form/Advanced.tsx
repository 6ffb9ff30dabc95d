/** What most streams do without: rows that end a key, punctuations, and shedding under overload. */
import { useState } from 'react';
import classes from './Advanced.module.css';
import { connectorOf, type TextField as Name } from './draft';
import { errorAt } from './fieldErrors';
import { ChoiceField, TextField } from './Field';
import { FieldGrid } from './Section';
import sourceClasses from './SourceFields.module.css';
import type { Form } from './useEntry';

const PUNCTUATE: Name[] = ['punctuate.every', 'punctuate.column', 'punctuate.value', 'punctuate.per'];
const FIELDS: Name[] = ['key', ...PUNCTUATE, 'shed.threshold', 'shed.capacity', 'shed.base', 'shed.shape'];

export function Advanced({ form }: { form: Form }) {
  const isUsed = FIELDS.some((field) => (form.draft.texts[field] ?? '') !== '');
  const [isOpen, setOpen] = useState(isUsed);
  const isWrong = ['key', 'deletes', 'punctuate', 'shed'].some((section) => errorAt(form.errors, section) !== undefined);
  return (
    <details className={classes.fold} open={isOpen || isWrong} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className={classes.summary}>
        Advanced <span className={classes.note}>deletes, punctuations and load shedding{isUsed && ', set'}</span>
      </summary>
      <div className={classes.fields}>
        <FieldGrid inPairs>
          <TextField
            form={form}
            field="key"
            label="Key that rows end"
            placeholder="none"
            hint="Columns of a table that changes: a row with nothing else deletes what ASOF JOIN found there"
          />
        </FieldGrid>
        <PunctuateFields form={form} />
        <p className={sourceClasses.words}>
          Under overload a part of the rows can be dropped, so that answers stay quick. From the threshold on the share
          grows, and at the capacity all are dropped: both are live tuples a unit.
        </p>
        <FieldGrid inPairs>
          <TextField
            form={form}
            field="shed.threshold"
            label="Shed from"
            placeholder="never"
            inputMode="numeric"
            hint="The threshold"
          />
          <TextField form={form} field="shed.capacity" label="Shed all at" inputMode="numeric" hint="The capacity" />
          <TextField
            form={form}
            field="shed.base"
            label="Share at first"
            placeholder="0"
            inputMode="decimal"
            hint="0 or more, below 1"
          />
          <ChoiceField
            form={form}
            field="shed.shape"
            label="Grows"
            data={[{ value: '', label: 'linear' }, 'quadratic']}
          />
        </FieldGrid>
      </div>
    </details>
  );
}

/** Where periods end, by one of three rules. */
function PunctuateFields({ form }: { form: Form }) {
  const connector = connectorOf(form.draft.source);
  // Each request with pushed rows is a file.
  const hasFiles = connector === 'files' || connector === 'push';
  return (
    <FieldGrid inPairs>
      <TextField
        form={form}
        field="punctuate.every"
        label="Punctuation every"
        placeholder="none"
        hint="A span such as 1s, for results whose snapshots close by punctuation"
      />
      {hasFiles && (
        <ChoiceField
          form={form}
          field="punctuate.per"
          label="Or with each"
          data={[{ value: '', label: 'none' }, 'file']}
          hint={connector === 'push' ? 'Each request with rows ends a period' : 'The end of a file ends a period'}
        />
      )}
      <TextField
        form={form}
        field="punctuate.column"
        label="Or at rows whose column"
        placeholder="none"
        hint="Such a row ends a period"
      />
      <TextField form={form} field="punctuate.value" label="Is" placeholder="none" hint="A value of that column" />
    </FieldGrid>
  );
}
