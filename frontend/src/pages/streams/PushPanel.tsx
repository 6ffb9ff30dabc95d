/** Post rows into a stream: how programs do it, and a few by hand. */
import { Button, Code, SegmentedControl, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent, type KeyboardEvent } from 'react';
import { answered, api } from '../../api/client';
import { sampleQuery } from '../../api/queries';
import type { Stream } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { pushRows } from '../../recipes';
import classes from './PushPanel.module.css';
import { exampleRow, rowsOf } from './rows';

type Way = 'curl' | 'python';

/** The rows as they were typed: read and written again, large numbers would lose digits. */
const post = (stream: string, text: string, batch: string) =>
  answered(
    api.POST('/api/v1/streams/{id}/rows', {
      params: { path: { id: stream }, query: batch === '' ? {} : { batch_id: batch } },
      headers: { 'Content-Type': 'application/x-ndjson' },
      // The description of the route has no body, which is text.
      body: text as never,
      bodySerializer: (body: unknown) => body as string,
    }),
  );

export function PushPanel({ stream, mayPost }: { stream: Stream; mayPost: boolean }) {
  const client = useQueryClient();
  const [example] = useState(() => exampleRow(stream.spec, new Date()));
  const [text, setText] = useState(() => JSON.stringify(example));
  const [batch, setBatch] = useState('');
  const [mistake, setMistake] = useState<string | null>(null);
  const [way, setWay] = useState<Way>('curl');
  const posting = useMutation({
    mutationFn: () => post(stream.id, text, batch.trim()),
    onSuccess: () => client.invalidateQueries({ queryKey: sampleQuery(stream.name).queryKey }),
  });
  const typed = rowsOf(text);
  const recipe = pushRows(stream.name, typed.mistake === null ? typed.rows : [example], batch.trim());
  const send = () => {
    setMistake(typed.mistake);
    if (typed.mistake === null) posting.mutate();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
  };
  return (
    <Panel
      title="Post rows"
      note="one JSON object a line; they are on disk when the platform answers"
      actions={<CopyAs recipe={recipe} what="post these rows" />}
    >
      <form className={classes.form} noValidate onSubmit={submit} onKeyDown={onKeyDown}>
        <Textarea
          label="Rows"
          autosize
          minRows={2}
          maxRows={10}
          spellCheck={false}
          disabled={!mayPost}
          classNames={{ input: classes.code }}
          value={text}
          error={mistake}
          onChange={(event) => {
            setText(event.currentTarget.value);
            setMistake(null);
          }}
        />
        <div className={classes.line}>
          <TextInput
            className={classes.batch}
            label="Name of these rows"
            placeholder="none"
            description="Posted again under the same name, they are kept once"
            inputWrapperOrder={['label', 'input', 'description', 'error']}
            autoComplete="off"
            spellCheck={false}
            disabled={!mayPost}
            value={batch}
            onChange={(event) => setBatch(event.currentTarget.value)}
          />
          <Button type="submit" size="sm" className={classes.button} disabled={!mayPost} loading={posting.isPending}>
            Post
          </Button>
        </div>
        {posting.error !== null && <ProblemView error={posting.error} />}
        <p className={classes.words} role="status">
          {posting.data !== undefined && wordsFor(posting.data)}
        </p>
      </form>
      <div className={classes.how}>
        <SegmentedControl
          size="xs"
          aria-label="How a program posts these rows"
          value={way}
          onChange={(value) => setWay(value)}
          data={[
            { value: 'curl', label: 'curl' },
            { value: 'python', label: 'Python' },
          ]}
        />
        <Code block tabIndex={0} className={classes.code} aria-label="What a program runs" role="region">
          {recipe[way]}
        </Code>
      </div>
    </Panel>
  );
}

function wordsFor({ rows, duplicate }: { rows: number; duplicate: boolean }): string {
  const what = rows === 1 ? '1 row' : `${formatCount(rows)} rows`;
  return duplicate ? `${what}, which were there already under this name: nothing changed` : `${what} posted`;
}
