/** Everything of a job but its query: operator, run, results, and whether its streams are taken over anew. */
import { Checkbox, NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { operatorsQuery } from '../../../api/queries';
import { Panel } from '../../../components/Panel';
import { Fields } from './Fields';
import {
  fieldOf,
  isKnown,
  knobsOf,
  OPERATOR_NAME,
  RESULT_FIELDS,
  RUN_FIELDS,
  SNAPSHOT_FIELDS,
  type Field,
} from './fields';
import type { Section } from './definition';
import { operatorOfForm, pointerOf, type Form } from './form';
import classes from './Sections.module.css';

/** The fields that are shown: those that are known, and those that the job has besides. */
export function shownFields(form: Form): Record<Section | 'snapshot', Field[]> {
  const others = (section: Section) =>
    Object.keys(form.fields)
      .filter((path) => path.startsWith(`${section}.`) && !isKnown(path))
      .map(fieldOf);
  return {
    operator: [...knobsOf(operatorOfForm(form)), ...others('operator')],
    run: [...RUN_FIELDS, ...others('run')],
    results: [...RESULT_FIELDS, ...others('results')],
    snapshot: SNAPSHOT_FIELDS,
  };
}

interface SectionsProps {
  form: Form;
  streams: string[];
  /** By JSON pointer. */
  mistakes: Record<string, string>;
  onEdit: (change: Partial<Form>) => void;
}

export function Sections({ form, streams, mistakes, onEdit }: SectionsProps) {
  const operators = useQuery(operatorsQuery);
  const offered = operators.data?.filter(({ runs_jobs }) => runs_jobs).map(({ name }) => name) ?? [];
  const operator = operatorOfForm(form);
  const shown = shownFields(form);
  const set = (path: string, text: string) => onEdit({ fields: { ...form.fields, [path]: text } });
  const fields = (some: Field[]) => <Fields fields={some} texts={form.fields} mistakes={mistakes} onChange={set} />;
  return (
    <>
      <Panel title="Operator" note="what is left empty is as the operator has it">
        <NativeSelect
          className={classes.operator}
          label="Name"
          description="auto takes the one that fits the query"
          value={operator}
          error={mistakes[pointerOf(OPERATOR_NAME)]}
          data={[...new Set(['auto', ...offered, operator])]}
          onChange={(event) => set(OPERATOR_NAME, event.currentTarget.value)}
        />
        {fields(shown.operator)}
      </Panel>
      <Panel title="Run" note="how much at once, and on what">
        {fields(shown.run)}
      </Panel>
      <Panel title="Results" note="which are kept, and for how long">
        {fields(shown.results)}
        <h3 className={classes.sub}>When a snapshot closes</h3>
        {fields(shown.snapshot)}
      </Panel>
      <Panel title="Streams">
        <Checkbox
          label="Take over the streams as they are registered now"
          description={`${streams.join(' and ')} stay as they were when the job last changed`}
          checked={form.refreshStreams}
          onChange={(event) => onEdit({ refreshStreams: event.currentTarget.checked })}
        />
      </Panel>
    </>
  );
}
