/** The first line of a page, which is also the tab's title. */
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';
import classes from './PageTitle.module.css';

export function PageTitle({ title, beside, actions }: { title: string; beside?: ReactNode; actions?: ReactNode }) {
  useDocumentTitle(`${title} · StreamJoin`);
  return (
    <div className={classes.line}>
      <h1 className={classes.title}>{title}</h1>
      {beside}
      <div className={classes.actions}>{actions}</div>
    </div>
  );
}
