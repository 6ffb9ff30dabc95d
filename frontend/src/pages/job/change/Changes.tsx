/** Fields that differ, before and after; of a query the words that go and those that come. */
import type { ReactNode } from 'react';
import classes from './Changes.module.css';
import type { FieldChange } from './definition';
import { EFFECTS } from './effect';
import { shownValue } from './shownValue';
import { wordDiff } from './wordDiff';

interface ChangesProps {
  changes: (FieldChange & { effect?: string; reason?: string | null })[];
  before: ReactNode;
  after: ReactNode;
}

export function Changes({ changes, before, after }: ChangesProps) {
  return (
    <div className={classes.changes}>
      <div className={classes.heads} aria-hidden="true">
        <span>{before}</span>
        <span>{after}</span>
      </div>
      <ul className={classes.list}>
        {changes.map((change) => (
          <li key={change.field} className={classes.change}>
            <div className={classes.name}>
              <code>{change.field}</code>
              {change.effect !== undefined && (
                <span className={classes.effect} data-effect={change.effect}>
                  {EFFECTS[change.effect] ?? change.effect}
                </span>
              )}
            </div>
            {change.reason != null && <p className={classes.reason}>{change.reason}</p>}
            {change.field === 'query' ? <Words change={change} /> : <Values change={change} />}
          </li>
        ))}
      </ul>
    </div>
  );
}

const Values = ({ change }: { change: FieldChange }) => (
  <div className={classes.values}>
    <del className={classes.gone} data-unset={change.before == null}>
      {shownValue(change.before)}
    </del>
    <ins className={classes.new} data-unset={change.after == null}>
      {shownValue(change.after)}
    </ins>
  </div>
);

const Words = ({ change }: { change: FieldChange }) => (
  <pre className={classes.words}>
    {wordDiff(shownValue(change.before), shownValue(change.after)).map(({ kind, text }, place) => {
      if (kind === 'same') return text;
      const Tag = kind === 'gone' ? 'del' : 'ins';
      return (
        <Tag key={place} className={kind === 'gone' ? classes.goneWord : classes.newWord}>
          {text}
        </Tag>
      );
    })}
  </pre>
);
