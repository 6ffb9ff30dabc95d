/** What the change would do, and the button that does it. */
import { Button, Checkbox } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Job, JobChange } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { Empty } from '../../../components/Empty';
import { Panel } from '../../../components/Panel';
import { changeJob, diffJob } from '../../../recipes';
import { Notice } from '../Notice';
import { Changes } from './Changes';
import type { FieldChange } from './definition';
import { effectOf } from './effect';
import { isEmpty } from './form';
import type { Mistakes } from './mistakes';
import classes from './Preview.module.css';
import type { Look } from './useLook';

interface PreviewProps {
  job: Job;
  look: Look;
  mistakes: Mistakes;
  /** It was agreed that the job begins without its state. */
  agrees: boolean;
  onAgree: (agrees: boolean) => void;
  isApplying: boolean;
  /** Somebody else changed the job meanwhile, and that is to be settled first. */
  isBehind: boolean;
  /** Null where it cannot be applied, whatever is agreed. */
  onApply: ((change: JobChange) => void) | null;
  onDiscard: () => void;
  /** What stands before all else. */
  children: ReactNode;
}

export function Preview(props: PreviewProps) {
  const { job, look, agrees, children } = props;
  const { change, diff } = look;
  const differs = diff !== null && diff.changes.length > 0 && !props.isBehind;
  const effect = differs && props.mistakes.count === 0 ? effectOf(job, diff) : null;
  const needsConsent = effect?.losesState === true;
  const sent: JobChange = needsConsent && agrees ? { ...change, start_anew: true } : change;
  const isReady = effect !== null && !look.isLooking && (!needsConsent || agrees) && props.onApply !== null;
  return (
    <Panel
      title="What it would do"
      note={look.isLooking ? 'is being looked at' : undefined}
      actions={!isEmpty(change) && <CopyAs recipe={diffJob(job.name, change)} what="show what this change would do" />}
      flush
    >
      <div className={classes.said} aria-busy={look.isLooking}>
        {children}
        {effect !== null && (
          <Notice tone={effect.tone} title={effect.title}>
            <p>{effect.text}</p>
            {needsConsent && (
              <Checkbox
                mt="xs"
                label="Begin anew, without the state"
                checked={agrees}
                onChange={(event) => props.onAgree(event.currentTarget.checked)}
              />
            )}
          </Notice>
        )}
        {effect === null && !props.isBehind && <Unclear {...props} />}
      </div>
      {differs && (
        <Changes
          changes={job.generation > 0 ? diff.changes : diff.changes.map(withoutEffect)}
          before={`now, version ${String(job.version)}`}
          after="then"
        />
      )}
      {!isEmpty(change) && (
        <div className={classes.actions}>
          <CopyAs recipe={changeJob(job.name, sent, job.version)} what="apply this change" />
          <Button variant="default" onClick={props.onDiscard}>
            Discard
          </Button>
          <Button
            color={needsConsent ? 'red' : undefined}
            disabled={!isReady}
            loading={props.isApplying}
            onClick={() => props.onApply?.(sent)}
          >
            {job.wanted === 'running' ? 'Apply and restart' : 'Apply'}
          </Button>
        </div>
      )}
    </Panel>
  );
}

/** A job without state has none to keep or to lose. */
const withoutEffect = ({ field, before, after }: FieldChange): FieldChange => ({ field, before, after });

/** Why there is nothing to apply. */
function Unclear({ look: { change, diff }, mistakes }: PreviewProps) {
  if (isEmpty(change)) {
    return <Empty title="Nothing is changed yet">What a change keeps, and its cost, appear here as you type.</Empty>;
  }
  if (mistakes.count > 0) {
    return (
      <Notice tone="bad" title="It is refused">
        {mistakes.elsewhere.length < mistakes.count && <p>The reason stands where it was typed.</p>}
        {mistakes.elsewhere.map((mistake) => (
          <p key={mistake}>{mistake}</p>
        ))}
      </Notice>
    );
  }
  if (diff === null) return <p className={classes.words}>It is compared with the job as it is.</p>;
  return <Empty title="It is what the job is already">Streams, and all that was typed, are as the job has them.</Empty>;
}
