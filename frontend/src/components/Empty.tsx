/** Nothing here yet, and what to do about it. */
import type { ReactNode } from 'react';
import classes from './Empty.module.css';

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={classes.empty}>
      <p className={classes.title}>{title}</p>
      {children !== undefined && <div className={classes.text}>{children}</div>}
    </div>
  );
}
