/** A job's phase: a word, and a mark whose shape and colour say it again. */
import classes from './Phase.module.css';

type Tone = 'good' | 'busy' | 'bad' | 'quiet';

const TONES: Record<string, Tone> = {
  running: 'good',
  starting: 'busy',
  stopping: 'busy',
  restarting: 'busy',
  recovering: 'busy',
  deleting: 'busy',
  failed: 'bad',
  unknown: 'bad',
};

export function Phase({ phase }: { phase: string }) {
  return (
    <span className={classes.phase} data-tone={TONES[phase] ?? 'quiet'}>
      {phase}
    </span>
  );
}
