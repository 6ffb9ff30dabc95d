/** One field: a text or a choice, with what it means and what holds while it is empty. */
import { NativeSelect, TextInput } from '@mantine/core';
import { OPERATOR_NAME, type Field } from './fields';
import classes from './Fields.module.css';

interface FieldInputProps {
  field: Field;
  text: string;
  error: string | undefined;
  onChange: (text: string) => void;
}

const FLAGS = ['true', 'false'];

export function FieldInput({ field, text, error, onChange }: FieldInputProps) {
  const choices = field.choices ?? (field.kind === 'flag' ? FLAGS : undefined);
  const common = {
    label: field.label,
    description: field.hint,
    error,
    value: text,
    classNames: { root: classes.field, label: classes.label },
    onChange: (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value),
  };
  if (choices === undefined) return <TextInput {...common} placeholder={field.unset} autoComplete="off" />;
  const others = text === '' || choices.includes(text) ? [] : [text];
  const isNeeded = field.path === OPERATOR_NAME;
  return (
    <NativeSelect
      {...common}
      data={[...(isNeeded ? [] : [{ value: '', label: `not set: ${field.unset}` }]), ...choices, ...others]}
    />
  );
}
