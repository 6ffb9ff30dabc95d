/** The window as a field of its own: it is a part of the query, and is changed there. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import classes from './Fields.module.css';
import { windowOf, withWindow } from './window';

export function WindowField({ query, onChange }: { query: string; onChange: (query: string) => void }) {
  // As it is typed, with blanks that the query would not keep.
  const [typed, setTyped] = useState('');
  const window = windowOf(query);
  return (
    <TextInput
      className={classes.window}
      label="Window"
      description="WITHIN of the query: a span, (before, after), or a number of ROWS"
      placeholder="none: every pair, and state grows without end"
      autoComplete="off"
      value={typed.trim() === window ? typed : window}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        onChange(withWindow(query, event.currentTarget.value.trim()));
      }}
    />
  );
}
