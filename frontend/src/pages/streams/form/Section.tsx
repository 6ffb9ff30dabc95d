/** A part of a form: what its fields have in common is its heading. */
import type { ReactNode } from 'react';
import classes from './Section.module.css';

interface SectionProps {
  title: string;
  /** One choice that decides what the fields are. */
  choice?: ReactNode;
  children: ReactNode;
}

export function Section({ title, choice, children }: SectionProps) {
  return (
    <fieldset className={classes.section}>
      <legend className={classes.title}>{title}</legend>
      {choice !== undefined && <div className={classes.choice}>{choice}</div>}
      {children}
    </fieldset>
  );
}

/** Fields beside each other: three of them, or two. */
export function FieldGrid({ inPairs = false, children }: { inPairs?: boolean; children: ReactNode }) {
  return (
    <div className={classes.fields} data-in-pairs={inPairs}>
      {children}
    </div>
  );
}
