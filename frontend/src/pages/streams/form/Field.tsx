/** Fields of a stream's form, with the message that the platform has for each. */
import { NativeSelect, TextInput, type NativeSelectProps, type TextInputProps } from '@mantine/core';
import type { TextField as Name } from './draft';
import { errorAt } from './fieldErrors';
import type { Form } from './useEntry';

/** Fields beside each other stand on one line, whatever is said below them. */
const ORDER: NonNullable<TextInputProps['inputWrapperOrder']> = ['label', 'input', 'description', 'error'];

/** What all fields of the form have; the hint makes room for what is wrong. */
export const said = (hint: string | undefined, error: string | undefined) => ({
  inputWrapperOrder: ORDER,
  description: error === undefined ? hint : undefined,
  error,
});

interface FieldProps {
  form: Form;
  field: Name;
  hint?: string;
}

export function TextField({ form, field, hint, ...rest }: FieldProps & Omit<TextInputProps, 'form'>) {
  return (
    <TextInput
      autoComplete="off"
      spellCheck={false}
      value={form.draft.texts[field] ?? ''}
      onChange={(event) => form.set(field, event.currentTarget.value)}
      {...said(hint, errorAt(form.errors, field))}
      {...rest}
    />
  );
}

interface ChoiceFieldProps extends FieldProps {
  /** What holds where nothing was chosen. */
  otherwise?: string;
}

export function ChoiceField({
  form,
  field,
  hint,
  otherwise = '',
  ...rest
}: ChoiceFieldProps & Omit<NativeSelectProps, 'form'>) {
  return (
    <NativeSelect
      value={form.draft.texts[field] ?? otherwise}
      onChange={(event) => form.set(field, event.currentTarget.value)}
      {...said(hint, errorAt(form.errors, field))}
      {...rest}
    />
  );
}
