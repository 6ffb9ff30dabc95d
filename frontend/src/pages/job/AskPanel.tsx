/** Results that are kept, asked once: by time, by key, with a condition; and taken home as a file. */
import { Button, Menu, NumberInput, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { save } from '../../download';
import { askJob } from '../../recipes';
import { exported } from '../../results/ask';
import { CutNote } from '../../results/CutNote';
import { FORMATS, type FileFormat } from '../../results/formats';
import { SaveQuery } from '../queries/SaveQuery';
import { AnswerPages } from './AnswerPages';
import classes from './AskPanel.module.css';
import { OfQuery } from './OfQuery';
import { OWN, resultsOf } from './furtherQueries';
import { EMPTY_FORM, LIMIT_AT_FIRST, questionOf, withoutLimit, type AskForm } from './question';
import { usePages } from './usePages';

const LIMIT_MAX = 10_000;

export function AskPanel({ job }: { job: Job }) {
  const [form, setForm] = useState<AskForm>(EMPTY_FORM);
  const [of, setOf] = useState(OWN);
  const question = questionOf(resultsOf(job.name, of), form);
  const asked = usePages();
  const file = useMutation({
    mutationFn: (format: FileFormat) => exported(withoutLimit(question), format),
    onSuccess: ({ blob }, format) => save(blob, `${job.name}.${format}`),
  });
  const field = (name: 'from' | 'to' | 'key' | 'where') => ({
    value: form[name],
    onChange: (event: { currentTarget: { value: string } }) => setForm({ ...form, [name]: event.currentTarget.value }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    asked.ask(question);
  };
  return (
    <Panel
      title="Ask kept results"
      note="ranges include both ends; empty fields do not restrict"
      actions={
        <>
          <OfQuery job={job} of={of} onChange={setOf} />
          <SaveQuery question={question} />
          <CopyAs recipe={askJob(question)} what="ask this question" />
        </>
      }
      flush
    >
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
          onChange={(value) => setForm({ ...form, limit: Number(value) || LIMIT_AT_FIRST })}
        />
        <div className={classes.buttons}>
          <Button type="submit" loading={asked.isAsking}>
            Ask
          </Button>
          <Menu withinPortal={false}>
            <Menu.Target>
              <Button variant="default" loading={file.isPending}>
                Export
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              {FORMATS.map((format) => (
                <Menu.Item key={format} onClick={() => file.mutate(format)}>
                  All of it as {format}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
        </div>
      </form>
      {asked.error !== null && (
        <ProblemView error={asked.error} note={asked.pages === null ? undefined : 'The earlier answer is still shown below.'} />
      )}
      {file.error !== null && <ProblemView error={file.error} />}
      {file.data?.cut && <CutNote file={`${job.name}.${file.variables}`} cut={file.data.cut} />}
      {asked.pages === null ? (
        <Empty title="Nothing asked yet" />
      ) : (
        <AnswerPages pages={asked.pages} isAsking={asked.isAsking} onTurn={asked.turnTo} />
      )}
    </Panel>
  );
}
