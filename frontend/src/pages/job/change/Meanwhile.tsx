/** Somebody changed the job after one began to type: what is typed stays, and goes on over what is there now. */
import { Button } from '@mantine/core';
import type { Job } from '../../../api/types';
import { Notice } from '../Notice';
import { changesBetween } from './definition';
import { contested, type Typed } from './form';
import { shownValue } from './shownValue';

const SHOWN_MAX = 60;

const short = (value: unknown): string => {
  const text = shownValue(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
};

export function Meanwhile({ typed, job, onLoad }: { typed: Typed; job: Job; onLoad: () => void }) {
  const theirs = changesBetween(typed.base, job);
  const both = contested(typed, job);
  return (
    <Notice
      tone="busy"
      title="This job was changed meanwhile"
      actions={<Button onClick={onLoad}>Load what is there now</Button>}
    >
      <p>
        You began with version {typed.base.version}, and it is at version {job.version} now:{' '}
        {theirs.map(({ field, after }) => `${field} is ${field === 'query' ? 'another' : short(after)}`).join(', ')}. It
        is not overwritten. What you typed is kept when you load it.
      </p>
      {both.length > 0 && <p>Both of you changed {both.join(', ')}: yours stays in the form.</p>}
    </Notice>
  );
}
