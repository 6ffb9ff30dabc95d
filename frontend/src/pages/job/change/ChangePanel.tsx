/** A job's definition in a form: checked and compared while it is typed, and applied when it is right. */
import { useRef } from 'react';
import type { Job } from '../../../api/types';
import { ProblemView } from '../../../components/ProblemView';
import { Notice } from '../Notice';
import classes from './ChangePanel.module.css';
import { rebased, type Typed } from './form';
import { Meanwhile } from './Meanwhile';
import { Preview } from './Preview';
import { QueryFields } from './QueryFields';
import { Sections } from './Sections';
import { isOvertaken } from './useApply';
import { useChange } from './useChange';

interface ChangePanelProps {
  job: Job;
  /** Kept by the page, so that a look at another tab loses nothing; null while nothing is typed. */
  typed: Typed | null;
  onTyped: (typed: Typed | null) => void;
}

export function ChangePanel({ job, typed, onTyped }: ChangePanelProps) {
  const page = useRef<HTMLDivElement>(null);
  const { form, look, mistakes, apply, applied, isBehind, agrees, setAgrees, edit, put } = useChange(job, typed, onTyped);
  const isTold = mistakes.count > 0 || (isOvertaken(apply.error) && isBehind);
  const toFirstMistake = () =>
    requestAnimationFrame(() => page.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  return (
    <div ref={page} className={classes.columns}>
      <div className={classes.column}>
        <QueryFields
          query={form.query}
          seen={look.query}
          diagnostics={look.diagnostics}
          mistakes={mistakes.ofQuery}
          isLooking={look.isLooking}
          onChange={(query) => edit({ query })}
        />
        <Sections form={form} streams={job.streams} mistakes={mistakes.at} onEdit={edit} />
      </div>
      <div className={classes.preview}>
        <Preview
          job={job}
          look={look}
          mistakes={mistakes}
          agrees={agrees}
          onAgree={setAgrees}
          isApplying={apply.isPending}
          isBehind={isBehind && typed !== null}
          onApply={
            isBehind || mistakes.count > 0
              ? null
              : (change) => apply.mutate({ change, version: job.version }, { onError: toFirstMistake })
          }
          onDiscard={() => put(null)}
        >
          {applied !== null && (
            <Notice tone="good" title={`Version ${String(applied)} is in place`}>
              {job.wanted === 'running'
                ? 'The job goes on with it after the batch that runs.'
                : 'Its next start has it.'}
            </Notice>
          )}
          {isBehind && typed !== null && (
            <Meanwhile typed={typed} job={job} onLoad={() => put(rebased(typed, job))} />
          )}
          {look.error !== null && <ProblemView error={look.error} />}
          {apply.error !== null && !isTold && <ProblemView error={apply.error} />}
        </Preview>
      </div>
    </div>
  );
}
