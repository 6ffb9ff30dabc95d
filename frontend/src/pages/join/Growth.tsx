/** A query without a window is no mistake, and what it costs is said before it runs. */
import { useQuery } from '@tanstack/react-query';
import { explainQuery } from '../../api/queries';
import type { Draft } from '../../api/types';
import { formatBytes } from '../../format';
import classes from './Growth.module.css';
import { planOf } from './plan';

export function Growth({ draft, isReady }: { draft: Draft; isReady: boolean }) {
  const explained = useQuery({ ...explainQuery(draft), enabled: isReady, placeholderData: (before) => before });
  const plan = explained.data && planOf(explained.data);
  if (plan?.stateGrows !== true) return null;
  const growth =
    plan.stateBytesPerHour === null
      ? 'how fast is not known before it runs'
      : `by about ${formatBytes(plan.stateBytesPerHour)} an hour at the sampled rates`;
  return (
    <p className={classes.growth} role="note">
      <b>No window.</b> Every tuple is kept and the state grows without end, {growth}. <code>WITHIN 10 SECONDS</code> at
      the end of the query bounds it.
    </p>
  );
}
