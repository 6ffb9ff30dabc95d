/** Fields side by side, each with its own mistake. */
import { FieldInput } from './FieldInput';
import type { Field } from './fields';
import classes from './Fields.module.css';
import { pointerOf } from './form';

interface FieldsProps {
  fields: Field[];
  texts: Record<string, string>;
  /** By JSON pointer. */
  mistakes: Record<string, string>;
  onChange: (path: string, text: string) => void;
}

export function Fields({ fields, texts, mistakes, onChange }: FieldsProps) {
  return (
    <div className={classes.fields}>
      {fields.map((field) => (
        <FieldInput
          key={field.path}
          field={field}
          text={texts[field.path] ?? ''}
          error={mistakes[pointerOf(field.path)]}
          onChange={(text) => onChange(field.path, text)}
        />
      ))}
    </div>
  );
}
