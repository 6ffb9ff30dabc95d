/** The steps of a start: while it is under way those that are done, and afterwards what each of them took. */
import type { Job } from '../../api/types';
import { Ago } from '../../components/Ago';
import { lastStartWords, startingOf } from './begun';
import classes from './JobHead.module.css';

export function StartSteps({ job }: { job: Job }) {
  const starting = startingOf(job);
  if (starting === null) {
    const words = lastStartWords(job);
    return words === null ? null : <p className={classes.reason}>{words}</p>;
  }
  const { done, step, since } = starting;
  return (
    <p className={classes.reason}>
      Starting: {done === '' ? '' : `${done}, `}
      {step} <Ago at={since} isStill />
    </p>
  );
}
