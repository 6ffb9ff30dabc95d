/** The entry as a form: what stands in it depends on where the stream comes from. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { generatorsQuery } from '../../../api/queries';
import type { Sample } from '../../../api/types';
import { Advanced } from './Advanced';
import { ColumnsField } from './ColumnsField';
import { ConnectorCards } from './ConnectorCards';
import { connectorOf, textOf, withSource } from './draft';
import { SourceFields } from './SourceFields';
import classes from './SourceFields.module.css';
import { TimeFields } from './TimeFields';
import type { Form } from './useEntry';

interface FormViewProps {
  form: Form;
  sample: Sample | null;
  /** Of a connector that has some; they are no part of the entry. */
  credentials: ReactNode;
  /** Somebody has picked a file that is already there. */
  onFile: (name: string) => void;
}

export function FormView({ form, sample, credentials, onFile }: FormViewProps) {
  const { draft } = form;
  const connector = connectorOf(draft.source);
  const generators = useQuery({ ...generatorsQuery, enabled: connector === 'generator' });
  const made = generators.data?.find(({ kind }) => kind === draft.texts.kind)?.columns;
  const given = draft.schema?.map(({ name, value }) => ({ name, type: textOf(value) }));
  const columns = (connector === 'generator' ? made : given) ?? sample?.columns ?? [];
  const unshown = Object.keys(draft.rest);
  return (
    <>
      <ConnectorCards source={draft.source} onChoose={(source) => form.change(null, withSource(draft, source))} />
      <SourceFields form={form} onFile={onFile} />
      {credentials}
      {connector !== null && connector !== 'generator' && <ColumnsField form={form} />}
      <TimeFields form={form} columns={columns} />
      <Advanced form={form} />
      {unshown.length > 0 && (
        <p className={classes.words}>Only the JSON shows {unshown.join(', ')}; it is kept as it is.</p>
      )}
    </>
  );
}
