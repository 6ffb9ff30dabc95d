/** What a change does to the job itself, in words: what it keeps, and when it holds. */
import type { Diff, Job } from '../../../api/types';

export interface Effect {
  tone: 'good' | 'busy';
  title: string;
  text: string;
  /** What was joined so far is lost by it, so somebody must agree. */
  losesState: boolean;
}

const WHEN = {
  running: 'It restarts after the batch that runs.',
  stopped: 'It holds from its next start on.',
};

export function effectOf(job: Pick<Job, 'wanted' | 'generation'>, diff: Diff): Effect {
  const when = job.wanted === 'running' ? WHEN.running : WHEN.stopped;
  if (job.generation === 0) {
    return {
      tone: 'good',
      title: 'Nothing is lost',
      text: `The job has not run yet, so it has no state to keep. ${when}`,
      losesState: false,
    };
  }
  if (diff.starts_anew) {
    return {
      tone: 'busy',
      title: 'The job begins anew',
      text:
        'What it has joined so far does not fit: it begins again with an empty state, where its streams begin. ' +
        `Results kept so far stay in the store, under an earlier name, until the job is deleted. ${when}`,
      losesState: true,
    };
  }
  return {
    tone: 'good',
    title: 'The job keeps its state',
    text: `It goes on where it was, and no result is lost or doubled by that. ${when}`,
    losesState: false,
  };
}

/** The label of one field's effect. */
export const EFFECTS: Record<string, string> = { keeps_state: 'keeps state', starts_anew: 'begins anew' };
