/** The sections of settings of a new join, with their fields. */
import { STORES } from '../../api/fields.gen';
import { knobsOf, RESULT_FIELDS, RUN_FIELDS, SNAPSHOT_FIELDS, type Field } from '../job/change/fields';
import { operatorOf, type JoinDraft } from './draft';

/** A job stays with its store, so that only a new one has a choice. */
const STORE: Field = {
  path: 'results.store',
  label: 'Results store',
  hint: 'where results are kept, for good',
  unset: 'as the platform is set',
  kind: 'text',
  choices: [...STORES, 'auto'],
};

interface Section {
  title: string;
  fields: Field[];
}

export function sectionsOf(draft: JoinDraft): Section[] {
  const operator = operatorOf(draft);
  const knobs = knobsOf(operator);
  const isOrdering = ({ path }: Field) => path === 'operator.ordering';
  return [
    { title: 'Results: store, retention, and which are kept', fields: [STORE, ...RESULT_FIELDS] },
    {
      title: 'Order of results, and when a snapshot closes',
      fields: [...knobs.filter(isOrdering), ...SNAPSHOT_FIELDS],
    },
    { title: 'Slots, batches, and running until the end', fields: RUN_FIELDS },
    { title: 'Knobs of the operator', fields: knobs.filter((field) => !isOrdering(field)) },
  ].filter(({ fields }) => fields.length > 0);
}
