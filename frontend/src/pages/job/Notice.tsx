/** Something that must be seen before all else, with the way out beside it. */
import type { ReactNode } from 'react';
import classes from './Notice.module.css';

interface NoticeProps {
  tone: 'bad' | 'busy' | 'good';
  title: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
}

export function Notice({ tone, title, children, actions }: NoticeProps) {
  return (
    <div className={classes.notice} data-tone={tone} role={tone === 'good' ? 'status' : 'alert'}>
      <p className={classes.title}>{title}</p>
      {children !== undefined && <div className={classes.text}>{children}</div>}
      {actions !== undefined && <div className={classes.actions}>{actions}</div>}
    </div>
  );
}
