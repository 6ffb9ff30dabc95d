/** The entry as JSON, with what is wrong in words below it. */
import { lazy, Suspense, useMemo } from 'react';
import { Loading } from '../../../components/Loading';
import type { Squiggle } from '../../../editor/offsets';
import { spanOf, type Errors } from './fieldErrors';
import { placeOf, type ObjectReading } from './json';
import classes from './JsonView.module.css';

// The editor is large, and most people use the form.
const JsonEditor = lazy(() => import('./JsonEditor').then((editor) => ({ default: editor.JsonEditor })));

interface JsonViewProps {
  text: string;
  reading: ObjectReading;
  errors: Errors;
  onChange: (text: string) => void;
}

export function JsonView({ text, reading, errors, onChange }: JsonViewProps) {
  const squiggles = useMemo(() => squigglesOf(text, reading, errors), [text, reading, errors]);
  return (
    <div className={classes.view}>
      <Suspense fallback={<Loading what="the editor" lines={6} />}>
        <JsonEditor label="Entry as JSON" value={text} onChange={onChange} squiggles={squiggles} />
      </Suspense>
      <div className={classes.verdict} role="status">
        {squiggles.length === 0 && 'An entry of “streams:” of a join file, in JSON'}
        {squiggles.map(({ from, message }, place) => {
          const { line, column } = placeOf(text, from);
          return (
            <p key={place} className={classes.mistake}>
              Line {line}, column {column}: {message}
            </p>
          );
        })}
      </div>
    </div>
  );
}

/** What cannot be read, or else what the platform refused; an empty place gets a character to underline. */
function squigglesOf(text: string, reading: ObjectReading, errors: Errors): Squiggle[] {
  const found =
    reading.mistake !== null
      ? [reading.mistake]
      : Object.entries(errors).flatMap(([field, message]) => {
          if (field === 'name' || field.startsWith('secrets')) return [];
          const span = spanOf(reading.spans, field);
          const isThere = span !== undefined && span !== reading.spans.get('');
          // A field that is not there is told at the beginning.
          return span === undefined
            ? []
            : [
                {
                  from: span.from,
                  to: isThere ? span.to : span.from,
                  message: isThere ? message : `${field}: ${message}`,
                },
              ];
        });
  return found.map(({ from, to, message }) => (to > from ? { from, to, message } : { ...around(text, from), message }));
}

const around = (text: string, at: number) =>
  at < text.length ? { from: at, to: at + 1 } : { from: Math.max(0, text.length - 1), to: text.length };
