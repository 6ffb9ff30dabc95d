/** What a test of the entry found, and what of that the entry can take over. */
import type { Column, Sample, Spec } from '../../../api/types';
import { connectorOf, schemaOf } from './draft';
import { TestResult } from './TestResult';
import type { Entry } from './useEntry';
import type { Tested } from './useTest';

interface TestedEntryProps {
  entry: Entry;
  tested: Tested | null;
  isTesting: boolean;
  /** Tests it once more, with what was taken over. */
  onLook: (spec: Spec) => void;
}

export function TestedEntry({ entry, tested, isTesting, onLook }: TestedEntryProps) {
  const { spec, replace, forget } = entry;
  const mayTake = spec !== null && connectorOf(spec.source) === 'files' && spec.schema === undefined;
  const takeColumns = (columns: Column[]) =>
    replace({ ...spec, schema: Object.fromEntries(schemaOf(columns).map(({ name, value }) => [name, value])) });
  const takeTime = ({ name, time_unit }: Sample['times'][number]) => {
    const timed = { ...spec, time: name, ...(time_unit != null && { time_unit }) };
    replace(timed);
    forget('time');
    onLook(timed);
  };
  return (
    <TestResult
      tested={tested}
      isPending={isTesting}
      isOld={tested !== null && JSON.stringify(tested.spec) !== JSON.stringify(spec)}
      onUse={mayTake ? takeColumns : undefined}
      onUseTime={spec !== null && spec.time === undefined ? takeTime : undefined}
    />
  );
}
