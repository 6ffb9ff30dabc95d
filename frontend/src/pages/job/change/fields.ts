/** The fields of a job's sections that the form knows, with what they mean; others are shown as they are. */
import {
  OPERATOR_SETTINGS,
  RESULT_SETTINGS,
  RUN_SETTINGS,
  SNAPSHOT_SETTINGS,
  type Kind,
  type Setting,
} from '../../../api/fields.gen';

export type { Kind };

export interface Field {
  /** Dotted, as in a change: `run.slots`. */
  path: string;
  label: string;
  hint: string;
  /** What holds while the field is empty. */
  unset: string;
  kind: Kind;
  /** The only values that there are. */
  choices?: readonly string[];
}

const inSection =
  (section: string) =>
  ({ name, label, says, unset, kind, choices }: Setting): Field => ({
    path: `${section}.${name}`,
    label,
    hint: says,
    unset,
    kind,
    ...(choices && { choices }),
  });

const KNOBS = new Map(
  Object.entries(OPERATOR_SETTINGS).map(([operator, settings]) => [
    operator,
    // An operator's settings have the names that its page in the documents gives them.
    settings.map((one) => ({ ...inSection('operator')(one), label: one.name })),
  ]),
);

export const OPERATOR_NAME = 'operator.name';

/** What an operator can be told; nothing of one that the form does not know. */
export const knobsOf = (operator: string): Field[] => KNOBS.get(operator) ?? [];

const EVERY_KNOB = new Map([...KNOBS.values()].flatMap((fields) => fields.map((one) => [one.path, one])));

/** Whether a field of the section `operator` is for another operator only. */
export const isForAnother = (path: string, operator: string): boolean =>
  EVERY_KNOB.has(path) && KNOBS.has(operator) && !knobsOf(operator).some((one) => one.path === path);

/** What the platform sets unless a job does, and what it has beside the join file. */
const UNSET_HERE: Readonly<Record<string, string>> = {
  'run.slots': 'as the platform is set',
  'run.driver_memory': 'as the platform is set',
};
const UNTIL_END: Field = {
  path: 'run.until_end',
  label: 'Until the end',
  hint: 'the job ends with its streams',
  unset: 'false',
  kind: 'flag',
};

const ofRun = (setting: Setting): Field => {
  const found = inSection('run')(setting);
  return { ...found, unset: UNSET_HERE[found.path] ?? found.unset };
};

export const RESULT_FIELDS: Field[] = RESULT_SETTINGS.map(inSection('results'));
export const SNAPSHOT_FIELDS: Field[] = SNAPSHOT_SETTINGS.map(inSection('results.snapshot'));
export const RUN_FIELDS: Field[] = [...RUN_SETTINGS.map(ofRun), UNTIL_END];

const KNOWN = new Map([...RESULT_FIELDS, ...SNAPSHOT_FIELDS, ...RUN_FIELDS].map((one) => [one.path, one]));

/** A field by its name; one that the form does not know is a plain text. */
export const fieldOf = (path: string): Field =>
  KNOWN.get(path) ??
  EVERY_KNOB.get(path) ?? { path, label: path.slice(path.indexOf('.') + 1), hint: '', unset: 'not set', kind: 'text' };

export const isKnown = (path: string): boolean => path === OPERATOR_NAME || KNOWN.has(path) || EVERY_KNOB.has(path);
