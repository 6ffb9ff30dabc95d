/** The fields that a connector has of its own. */
import { NativeSelect, Textarea } from '@mantine/core';
import { connectorOf, withSource } from './draft';
import { FileChoice, type Chosen } from './FileChoice';
import { errorAt } from './fieldErrors';
import { ChoiceField, said, TextField } from './Field';
import { GeneratorFields } from './GeneratorFields';
import { Pairs } from './Pairs';
import { FieldGrid, Section } from './Section';
import classes from './SourceFields.module.css';
import type { Form } from './useEntry';

const FORMATS = [
  { value: 'parquet', label: 'Parquet' },
  { value: 'csv', label: 'CSV' },
  { value: 'jsonl', label: 'JSON lines' },
  { value: 'arrow', label: 'Arrow' },
];

const DELIMITERS = [
  { value: ',', label: 'comma' },
  { value: ';', label: 'semicolon' },
  { value: '\t', label: 'tab' },
  { value: '|', label: 'vertical bar' },
];

const SHOWN_SETTINGS = ['security.protocol', 'sasl.mechanism', 'client.id', 'client.dns.lookup', 'session.timeout.ms'];

interface SourceFieldsProps {
  form: Form;
  /** Somebody has picked a file that is already there. */
  onFile: (name: string) => void;
}

export function SourceFields({ form, onFile }: SourceFieldsProps) {
  switch (connectorOf(form.draft.source)) {
    case 'files':
      return <FileFields form={form} onFile={onFile} />;
    case 'kafka':
      return <KafkaFields form={form} />;
    case 'push':
      return (
        <p className={classes.words}>
          Programs post JSON lines to this platform, which keeps them in files of its own. As soon as the stream is
          registered, its page shows how.
        </p>
      );
    case 'generator':
      return <GeneratorFields form={form} />;
    case null:
      return null;
  }
}

function FileFields({ form, onFile }: SourceFieldsProps) {
  const choose = ({ name, path, format }: Chosen) => {
    const chosen = withSource(form.draft, format ?? form.draft.source);
    const texts = { ...chosen.texts, path };
    if (name.endsWith('.tsv')) texts['csv.delimiter'] = '\t';
    form.change(null, { ...chosen, texts });
    onFile(name);
  };
  return (
    <FileChoice onChoose={choose}>
    <div className={classes.files}>
      <NativeSelect
        label="Format"
        data={FORMATS}
        value={form.draft.source}
        onChange={(event) => form.change('source', withSource(form.draft, event.currentTarget.value))}
        {...said(undefined, errorAt(form.errors, 'source'))}
      />
      <TextField
        form={form}
        field="path"
        label="Path"
        placeholder="/data/orders"
        hint="Of a file, of a folder whose files are read in the order of their names, or a pattern such as /data/**/*.csv; somewhere that the platform may read"
      />
      {form.draft.source === 'csv' && (
        <>
          <ChoiceField form={form} field="csv.delimiter" label="Delimiter" data={DELIMITERS} otherwise="," />
          <TextField form={form} field="csv.null" label="NULL is written" hint="Nothing between two delimiters, unless set" />
        </>
      )}
    </div>
    </FileChoice>
  );
}

function KafkaFields({ form }: { form: Form }) {
  const { draft, errors } = form;
  return (
    <>
      <FieldGrid inPairs>
        <TextField
          form={form}
          field="servers"
          label="Servers"
          placeholder="127.0.0.1:9092"
          hint="host:port, with commas between"
        />
        <TextField form={form} field="topic" label="Topic" placeholder="orders" />
      </FieldGrid>
      <FieldGrid inPairs>
        <ChoiceField
          form={form}
          field="format"
          label="Format of records"
          data={['json', 'csv', 'avro', 'arrow']}
          otherwise="json"
        />
        <ChoiceField
          form={form}
          field="starting"
          label="Start at"
          data={[
            { value: 'earliest', label: 'the earliest record' },
            { value: 'latest', label: 'the latest record' },
          ]}
          otherwise="earliest"
          hint="Counts for a job's first batch only"
        />
        <TextField
          form={form}
          field="rows_per_s"
          label="Records a second"
          placeholder="as the topic tells"
          hint="By which costs are predicted and the order of joins is chosen"
        />
      </FieldGrid>
      {draft.texts.format === 'avro' && <AvroSchemaField form={form} />}
      <Section title="Settings of the Kafka client">
        <p className={classes.words}>
          Everybody who sees the stream sees them. Passwords belong into the credentials below.
        </p>
        <Pairs
          field="client"
          what="setting"
          pairs={draft.client}
          errors={errors}
          suggestions={SHOWN_SETTINGS}
          onChange={(client) => form.change('client', { client })}
        />
      </Section>
    </>
  );
}

function AvroSchemaField({ form }: { form: Form }) {
  return (
    <Textarea
      label="Avro schema"
      placeholder='{"type": "record", "name": "order", "fields": …}'
      autosize
      minRows={3}
      maxRows={12}
      spellCheck={false}
      classNames={{ input: classes.code }}
      value={form.draft.texts.avro_schema ?? ''}
      onChange={(event) => form.set('avro_schema', event.currentTarget.value)}
      {...said('What records were written with: as JSON, or the path of a file', errorAt(form.errors, 'avro_schema'))}
    />
  );
}
