/** A hint to run until the end, where the last groups would wait for rows that never come. */
import { Anchor } from '@mantine/core';
import classes from './Growth.module.css';

export function HeldGroups({ onUntilEnd }: { onUntilEnd: () => void }) {
  return (
    <p className={classes.growth} role="note">
      <b>The last groups would wait.</b> A group comes out when later rows close its window, and these streams end. With{' '}
      <em>Until the end</em> the job gives all groups, and stops.{' '}
      <Anchor component="button" type="button" fz="inherit" underline="always" onClick={onUntilEnd}>
        Set Until the end
      </Anchor>
    </p>
  );
}
