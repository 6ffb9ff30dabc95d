/** What a change does to the job itself, in words: what it keeps, and when it holds. */
import type { Diff, Dropped, Job } from '../../../api/types';
import { formatCount } from '../../../format';

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
        `What it has joined so far ${diff.drops?.could_go_on === null ? 'may not fit' : 'does not fit'}: it begins again with ` +
        `an empty state, where its streams begin. ${diff.drops ? `${droppedText(diff.drops)} ` : ''}` +
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

/** What a job that begins anew leaves behind. */
export function droppedText({ state_at: at, results }: Dropped): string {
  const state = at === null ? 'The state' : `The state of ${at.replace('T', ' ').replace('Z', ' UTC')}`;
  const rows = results === null ? 'all results so far' : `${formatCount(results)} results`;
  return `${state} is dropped, and ${rows} are no longer the job's.`;
}

/** What is to be thought of before a job that failed begins anew. */
export function adviceOn({ could_go_on: could }: Dropped): string {
  if (could === true) return 'The job could go on with it: restart it instead, unless you want to lose it.';
  return could === false ? 'It does not fit the job as it is.' : 'Whether it fits cannot be told from here: a restart tells.';
}

/** The label of one field's effect. */
export const EFFECTS: Record<string, string> = { keeps_state: 'keeps state', starts_anew: 'begins anew' };
