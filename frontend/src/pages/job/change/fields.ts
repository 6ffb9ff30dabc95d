/** The fields of a job's sections that the form knows, with what they mean; others are shown as they are. */

export type Kind = 'text' | 'number' | 'numbers' | 'names' | 'flag';

export interface Field {
  /** Dotted, as in a change: `run.slots`. */
  path: string;
  label: string;
  hint: string;
  /** What holds while the field is empty. */
  unset: string;
  kind: Kind;
  /** The only values that there are. */
  choices?: string[];
}

const knob = (name: string, kind: Kind, hint: string, unset: string, choices?: string[]): Field => ({
  path: `operator.${name}`,
  label: name,
  hint,
  unset,
  kind,
  ...(choices && { choices }),
});

const ORDERING = knob('ordering', 'text', 'the order in which results leave', 'none', [
  'none',
  'outer',
  'inner',
  'total',
]);

const COMMON = [
  knob('archive_period', 'text', 'event time that a segment of the index covers', 'a tenth of the window'),
  knob('index', 'text', 'how partners are found', 'auto', ['auto', 'hash', 'tree', 'scan']),
  knob('main', 'text', 'the condition that is indexed, as in the query', 'the best one'),
];

const BICLIQUE = [
  knob('routing', 'text', 'which units a tuple goes to', 'hash or random', [
    'random',
    'hash',
    'contrand',
  ]),
  knob('r_units', 'number', 'store the first stream', 'one a slot'),
  knob('s_units', 'number', 'store the second stream', 'one a slot'),
  knob('r_groups', 'number', 'contrand: subgroups of r_units', 'the root of r_units'),
  knob('s_groups', 'number', 'contrand: subgroups of s_units', 'the root of s_units'),
  knob('r_bounds', 'numbers', 'contrand on a band: where the next subgroups begin', 'none'),
  knob('s_bounds', 'numbers', 'contrand on a band: where the next subgroups begin', 'none'),
];

const KNOBS: Record<string, Field[]> = {
  auto: [...BICLIQUE, ...COMMON, ORDERING],
  biclique: [...BICLIQUE, ...COMMON, ORDERING],
  matrix: [
    knob('rows', 'number', 'partitions of the first stream', 'the root of the slots'),
    knob('columns', 'number', 'partitions of the second stream', 'slots divided by rows'),
    ...COMMON,
    ORDERING,
  ],
  splitjoin: [
    knob('cores', 'number', 'join cores', 'one a slot'),
    knob('turn_tuples', 'number', 'tuples that a core stores in a row', '1'),
    ...COMMON,
    ORDERING,
  ],
  handshake: [
    knob('workers', 'number', 'workers in the line', 'one a slot'),
    knob('block', 'number', 'tuples that are sent on together', 'half of a fair share'),
    knob('balance', 'flag', 'false: each worker keeps tuples of a fixed age', 'true'),
    knob('threshold', 'number', 'so many tuples more than its successor before it sends any on', '0'),
    ...COMMON,
  ],
};

export const OPERATOR_NAME = 'operator.name';

/** What an operator can be told; nothing of one that the form does not know. */
export const knobsOf = (operator: string): Field[] => KNOBS[operator] ?? [];

const EVERY_KNOB = new Map(Object.values(KNOBS).flatMap((fields) => fields.map((one) => [one.path, one])));

/** Whether a field of the section `operator` is for another operator only. */
export const isForAnother = (path: string, operator: string): boolean =>
  EVERY_KNOB.has(path) && KNOBS[operator] !== undefined && !knobsOf(operator).some((one) => one.path === path);

const field = (path: string, label: string, kind: Kind, hint: string, unset: string): Field => ({
  path,
  label,
  hint,
  unset,
  kind,
});

export const RESULT_FIELDS: Field[] = [
  field('results.where', 'Only results where', 'text', 'a condition over the result columns', 'all of them'),
  field('results.select', 'Only the columns', 'names', 'names with commas between', 'all of them'),
  field('results.retain', 'Kept for', 'text', 'a span, such as 30d', 'for ever'),
];

export const SNAPSHOT_FIELDS: Field[] = [
  field('results.snapshot.epoch', 'Epoch', 'text', 'a span of the clock', '1s'),
  field('results.snapshot.batches', 'Batches an epoch', 'number', 'in place of a span', 'none'),
  field('results.snapshot.threshold_rows', 'Threshold in rows', 'number', 'a snapshot closes with so many', '100000'),
  field('results.snapshot.threshold_bytes', 'Threshold in bytes', 'number', 'or with so much', 'none'),
  field('results.snapshot.immediate', 'Immediate', 'flag', 'at the threshold, before the epoch ends', 'true'),
  field('results.snapshot.delayed', 'Delayed', 'number', 'with less than this part of it, wait on', 'do not wait'),
  field('results.snapshot.delays', 'Delays', 'number', 'so many epochs at most', '3'),
  field('results.snapshot.punctuation', 'Punctuation', 'flag', 'in place of all others', 'false'),
];

export const RUN_FIELDS: Field[] = [
  field('run.slots', 'Slots', 'number', 'parts of the join that run side by side', 'as the platform is set'),
  field('run.files_per_batch', 'Files a batch', 'number', 'of each file stream, at most', 'files of about 16 MiB'),
  field('run.offsets_per_batch', 'Rows a batch', 'number', 'of each Kafka or generator stream, at most', '100000'),
  field('run.heartbeat', 'Heartbeat', 'text', 'a batch so often while nothing arrives', '1s'),
  field('run.driver_memory', 'Driver memory', 'number', 'MiB of Java heap, 480 or more', 'as the platform is set'),
  field('run.strict', 'Strict', 'flag', 'a row that cannot be joined stops the job', 'false'),
  field('run.until_end', 'Until the end', 'flag', 'the job ends with its streams', 'false'),
];

const KNOWN = new Map([...RESULT_FIELDS, ...SNAPSHOT_FIELDS, ...RUN_FIELDS].map((one) => [one.path, one]));

/** A field by its name; one that the form does not know is a plain text. */
export const fieldOf = (path: string): Field =>
  KNOWN.get(path) ?? EVERY_KNOB.get(path) ?? field(path, path.slice(path.indexOf('.') + 1), 'text', '', 'not set');

export const isKnown = (path: string): boolean => path === OPERATOR_NAME || KNOWN.has(path) || EVERY_KNOB.has(path);
