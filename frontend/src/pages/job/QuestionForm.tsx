/** The fields of a one-time question. */
import { Button, NumberInput, TextInput } from '@mantine/core';
import type { FormEvent, ReactNode } from 'react';
import { LIMIT_AT_FIRST, type AskForm } from './question';
import classes from './QuestionForm.module.css';

const LIMIT_MAX = 10_000;

interface QuestionFormProps {
  form: AskForm;
  isAsking: boolean;
  onChange: (form: AskForm) => void;
  onAsk: () => void;
  /** Other ways to an answer. */
  children: ReactNode;
}

export function QuestionForm({ form, isAsking, onChange, onAsk, children }: QuestionFormProps) {
  const field = (name: 'from' | 'to' | 'key' | 'where') => ({
    value: form[name],
    onChange: (event: { currentTarget: { value: string } }) => onChange({ ...form, [name]: event.currentTarget.value }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onAsk();
  };
  return (
    <form className={classes.form} onSubmit={submit}>
      <TextInput label="From" placeholder="2026-01-31T12:00:00Z" {...field('from')} />
      <TextInput label="To" placeholder="2026-01-31T12:05:00Z" {...field('to')} />
      <TextInput label="Key" placeholder="1003" {...field('key')} />
      <TextInput className={classes.where} label="Where" placeholder="price > 100 AND …" {...field('where')} />
      <NumberInput
        label="Rows per page"
        min={1}
        max={LIMIT_MAX}
        value={form.limit}
        onChange={(value) => onChange({ ...form, limit: Number(value) || LIMIT_AT_FIRST })}
      />
      <div className={classes.buttons}>
        <Button type="submit" loading={isAsking}>
          Ask
        </Button>
        {children}
      </div>
    </form>
  );
}
