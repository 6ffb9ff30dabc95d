// The fields of the dashboard's forms, from the JSON Schema of the join file: `fields.gen.ts`.

const KINDS = { boolean: 'flag', integer: 'number', number: 'number' };
const LISTS = { integer: 'numbers', string: 'names' };

/** What is typed into a field; `text` for all that has no kind of its own. */
function kindOf({ type, items, anyOf }) {
  if (type === 'array') return LISTS[items?.type] ?? 'text';
  return KINDS[type] ?? anyOf?.map(kindOf).find((kind) => kind !== 'text') ?? 'text';
}

const shown = (value) => (value === undefined ? 'not set' : typeof value === 'string' ? value : JSON.stringify(value));

const fieldOf = ([name, schema]) => {
  const form = schema['x-form'] ?? {};
  return {
    name,
    label: form.label ?? name,
    says: schema.description ?? '',
    unset: form.unset ?? shown(schema.default),
    kind: kindOf(schema),
    ...(schema.enum && { choices: schema.enum }),
    countsUnits: form.counts_units === true,
    compared: form.compared === true,
  };
};

/** Fields in order; `labelled` are those that a form of the dashboard has room for. */
const fieldsOf = (schema, without = []) =>
  Object.entries(schema.properties)
    .filter(([name]) => !without.includes(name))
    .map(fieldOf);

const labelled = (schema) => fieldsOf({
  properties: Object.fromEntries(Object.entries(schema.properties).filter(([, one]) => one['x-form']?.label)),
});

const TYPES = `export type Kind = 'text' | 'number' | 'numbers' | 'names' | 'flag';

export interface Setting {
  name: string;
  label: string;
  /** What it means, in a sentence. */
  says: string;
  /** What holds while it is empty. */
  unset: string;
  kind: Kind;
  /** The only values that there are. */
  choices?: readonly string[];
  /** Whether it says how many units there are. */
  countsUnits: boolean;
  /** Whether operators are compared by it. */
  compared: boolean;
}
`;

export function fieldsText(schema) {
  const { OperatorFile, RunFile, ResultsFile, SnapshotFile } = schema.$defs;
  const operators = Object.fromEntries(
    OperatorFile.anyOf.map((one) => [one.properties.name.const, fieldsOf(one, ['name'])]),
  );
  const stores = ResultsFile.anyOf.filter(({ properties }) => properties.store !== undefined);
  const told = (name, type, value) => `\nexport const ${name}: ${type} = ${JSON.stringify(value, null, 2)};\n`;
  return [
    TYPES,
    told('OPERATOR_SETTINGS', 'Readonly<Record<string, readonly Setting[]>>', operators),
    told('RUN_SETTINGS', 'readonly Setting[]', labelled(RunFile)),
    told('RESULT_SETTINGS', 'readonly Setting[]', labelled(stores[0])),
    told('STORES', 'readonly string[]', stores.map(({ properties }) => properties.store.const)),
    told('SNAPSHOT_SETTINGS', 'readonly Setting[]', labelled(SnapshotFile)),
  ].join('');
}
