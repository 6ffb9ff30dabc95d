/** A job's definition in a form: checked and compared while it is typed, and applied when it is right. */
import { useMemo, useRef, useState } from 'react';
import type { Job } from '../../../api/types';
import { ProblemView } from '../../../components/ProblemView';
import { Notice } from '../Notice';
import classes from './ChangePanel.module.css';
import { definitionOf, isSame, type Definition } from './definition';
import { OPERATOR_NAME } from './fields';
import { formOf, pointerOf, rebased, type Form, type Typed } from './form';
import { Meanwhile } from './Meanwhile';
import { mistakesOf } from './mistakes';
import { Preview } from './Preview';
import { QueryFields } from './QueryFields';
import { Sections, shownFields } from './Sections';
import { isOvertaken, useApply } from './useApply';
import { useLook } from './useLook';

interface ChangePanelProps {
  job: Job;
  /** Kept by the page, so that a look at another tab loses nothing; null while nothing is typed. */
  typed: Typed | null;
  onTyped: (typed: Typed | null) => void;
}

export function ChangePanel({ job, typed, onTyped }: ChangePanelProps) {
  const page = useRef<HTMLDivElement>(null);
  const [agrees, setAgrees] = useState(false);
  const [applied, setApplied] = useState<number | null>(null);
  const asItIs = JSON.stringify(definitionOf(job));
  const untouched = useMemo(() => formOf(JSON.parse(asItIs) as Definition), [asItIs]);
  const { base, form } = typed ?? { base: job, form: untouched };
  const look = useLook(job, { base, form });
  const apply = useApply(job.id, (changed) => {
    setApplied(changed.version);
    setAgrees(false);
    onTyped(null);
  });

  const pointers = Object.values(shownFields(form)).flatMap((fields) => fields.map(({ path }) => pointerOf(path)));
  const mistakes = mistakesOf(look.diagnostics, apply.error, [...pointers, pointerOf(OPERATOR_NAME)]);
  // A restart makes a version, too, but changes nothing of what is typed over.
  const isBehind = !isSame(definitionOf(base), definitionOf(job));
  const isTold = mistakes.count > 0 || (isOvertaken(apply.error) && isBehind);

  const edit = (change: Partial<Form>) => {
    apply.reset();
    setApplied(null);
    setAgrees(false);
    onTyped({ base, form: { ...form, ...change } });
  };
  const put = (next: Typed | null) => {
    apply.reset();
    onTyped(next);
  };
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
