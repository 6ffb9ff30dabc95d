/** The query as it is written, with its mistakes, and what is right about it. */
import type { Stream } from '../../api/types';
import { Panel } from '../../components/Panel';
import { SqlEditor } from '../../editor/SqlEditor';
import { tooLong } from './blockers';
import { withField, type JoinDraft } from './draft';
import { holdsGroupsBack, UNTIL_END } from './ends';
import { Growth } from './Growth';
import { HeldGroups } from './HeldGroups';
import classes from './NewJoinPage.module.css';
import { Templates } from './Templates';
import type { Checked } from './useChecked';
import { Verdict } from './Verdict';

const ORDERING = 'operator.ordering';

interface QueryPanelProps {
  draft: JoinDraft;
  checked: Checked;
  streams: Stream[];
  onEdit: (edit: (before: JoinDraft) => JoinDraft) => void;
}

export function QueryPanel({ draft, checked, streams, onEdit }: QueryPanelProps) {
  const { body, columns, isWritten, isReady, diagnostics, mistakes, squiggles, isRight } = checked;
  const long = tooLong(draft.query);
  return (
    <Panel title="Query" note="mistakes are underlined while you type; Ctrl-Space completes" flush>
      {streams.length > 0 && (
        <Templates
          streams={streams}
          onFill={(filled) =>
            onEdit((before) => withField({ ...before, query: filled.query }, ORDERING, filled.ordering))
          }
        />
      )}
      <SqlEditor
        label="Query"
        value={draft.query}
        onChange={(text) => onEdit((before) => (text === before.query ? before : { ...before, query: text }))}
        squiggles={squiggles}
        columns={columns}
      />
      {isWritten && long !== null && (
        <p className={classes.mistake} role="status">
          {long.charAt(0).toUpperCase() + long.slice(1)}.
        </p>
      )}
      {isWritten && long === null && (
        <Verdict
          diagnostics={diagnostics && { ...diagnostics, diagnostics: mistakes.ofQuery }}
          isChecking={checked.isFetching}
          hasFailed={checked.error !== null}
        />
      )}
      {mistakes.elsewhere.map((mistake) => (
        <p key={mistake} className={classes.mistake}>
          {mistake}
        </p>
      ))}
      {isRight && <Growth draft={body} isReady={isReady} />}
      {isRight && holdsGroupsBack(draft, streams) && (
        <HeldGroups onUntilEnd={() => onEdit((before) => withField(before, UNTIL_END, 'true'))} />
      )}
    </Panel>
  );
}
