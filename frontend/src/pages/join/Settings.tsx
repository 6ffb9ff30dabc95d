/** How the join is to run and what is kept of it: collapsed, as a newcomer needs none of it. */
import { useState } from 'react';
import { Panel } from '../../components/Panel';
import type { Field } from '../job/change/fields';
import { Fields } from '../job/change/Fields';
import { pointerOf } from '../job/change/form';
import type { JoinDraft } from './draft';
import { sectionsOf } from './sections';
import classes from './Settings.module.css';

interface SettingsProps {
  draft: JoinDraft;
  /** By JSON pointer. */
  mistakes: Record<string, string>;
  onField: (path: string, text: string) => void;
}

export function Settings({ draft, mistakes, onField }: SettingsProps) {
  return (
    <Panel title="Settings" note="what is left empty is as the platform has it" flush>
      {sectionsOf(draft).map(({ title, fields }) => (
        <Section key={title} title={title} fields={fields} draft={draft} mistakes={mistakes} onField={onField} />
      ))}
    </Panel>
  );
}

function Section({ title, fields, draft, mistakes, onField }: SettingsProps & { title: string; fields: Field[] }) {
  const [isOpen, setIsOpen] = useState(false);
  const set = fields.filter(({ path }) => (draft.fields[path] ?? '') !== '');
  const isWrong = fields.some(({ path }) => mistakes[pointerOf(path)] !== undefined);
  return (
    // What is opened for a mistake stays open when it is mended: somebody types there.
    <details
      className={classes.section}
      open={isOpen || isWrong}
      onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}
    >
      <summary>
        {title}
        {set.length > 0 && <span className={classes.set}>{set.map(({ label }) => label).join(', ')}</span>}
      </summary>
      <div className={classes.fields}>
        <Fields fields={fields} texts={draft.fields} mistakes={mistakes} onChange={onField} />
      </div>
    </details>
  );
}
