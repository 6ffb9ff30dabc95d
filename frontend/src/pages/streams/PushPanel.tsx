/** Post rows into a stream: how programs do it, and a few by hand. */
import { Button, Code, SegmentedControl, Textarea, TextInput } from '@mantine/core';
import { useState, type FormEvent, type KeyboardEvent } from 'react';
import type { Stream } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import type { Recipe } from '../../recipes';
import classes from './PushPanel.module.css';
import { usePosting } from './usePosting';

export function PushPanel({ stream, mayPost }: { stream: Stream; mayPost: boolean }) {
  const { text, batch, mistake, posting, recipe, type, setBatch, send } = usePosting(stream);
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
          onChange={(event) => type(event.currentTarget.value)}
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
      <ForPrograms recipe={recipe} />
    </Panel>
  );
}

function wordsFor({ rows, duplicate }: { rows: number; duplicate: boolean }): string {
  const what = rows === 1 ? '1 row' : `${formatCount(rows)} rows`;
  return duplicate ? `${what}, which were there already under this name: nothing changed` : `${what} posted`;
}

/** How a program posts the same rows. */
function ForPrograms({ recipe }: { recipe: Recipe }) {
  const [way, setWay] = useState<'curl' | 'python'>('curl');
  return (
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
  );
}
