/** One figure with its name; several stand in a row. */
import type { ReactNode } from 'react';
import classes from './Stat.module.css';

export function Stat({ label, value, note }: { label: string; value: string; note?: ReactNode }) {
  return (
    <div className={classes.stat}>
      <dt className={classes.label}>{label}</dt>
      <dd className={classes.value}>
        {value}
        {note !== undefined && <span className={classes.note}>{note}</span>}
      </dd>
    </div>
  );
}

export function Stats({ children }: { children: ReactNode }) {
  return <dl className={classes.stats}>{children}</dl>;
}
