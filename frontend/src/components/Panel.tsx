/** A part of a page: a heading, what can be done there, and content. */
import { useId, type ReactNode } from 'react';
import classes from './Panel.module.css';

interface PanelProps {
  title: string;
  note?: ReactNode;
  actions?: ReactNode;
  /** Content up to the edges, such as a table. */
  flush?: boolean;
  children: ReactNode;
}

export function Panel({ title, note, actions, flush = false, children }: PanelProps) {
  const id = useId();
  return (
    <section className={classes.panel} aria-labelledby={id}>
      <header className={classes.head}>
        <h2 id={id} className={classes.title}>
          {title}
        </h2>
        {note !== undefined && <span className={classes.note}>{note}</span>}
        <span className={classes.actions}>{actions}</span>
      </header>
      <div className={flush ? classes.flush : classes.content}>{children}</div>
    </section>
  );
}
