/** How far a start of a job has come, step by step, and what the last one took. */
import type { Job } from '../../api/types';
import { formatDuration } from '../../format';

/** In the order in which a start takes them. */
const STEPS = {
  launch: 'launch',
  process: 'process',
  spark: 'Spark',
  state: 'state',
  first_look: 'first look',
  first_batch: 'first batch',
};

type Step = keyof typeof STEPS;
type Seconds = Record<string, number>;

const ORDER = Object.keys(STEPS) as Step[];

/** Told by a start only that found nothing to read yet. Its job waits then, and no start is under way. */
const QUIET: Step = 'first_look';

/** A start that is under way. */
export interface Starting {
  /** Such as "launch 0.4 s, process 0.9 s"; empty before the first step is done. */
  done: string;
  /** The step that it is at, and since when. */
  step: string;
  since: string | null;
}

type Parts = Pick<
  Job,
  'phase' | 'wanted' | 'wanted_since' | 'observed' | 'observed_since' | 'generation' | 'last_run' | 'last_start'
>;

const isDone = (seconds: Seconds) => (step: Step) => seconds[step] !== undefined;

const stepWords = (seconds: Seconds): string =>
  ORDER.filter(isDone(seconds))
    .map((step) => `${STEPS[step]} ${formatDuration((seconds[step] ?? 0) * 1000)}`)
    .join(', ');

/** Null where no start is under way, or nobody tells how far it is. */
export function startingOf(job: Parts): Starting | null {
  if (job.wanted !== 'running' || !['starting', 'restarting', 'running'].includes(job.phase)) return null;
  const run = job.last_run?.generation === job.generation && !job.last_run.ended ? job.last_run : null;
  if (run === null || job.observed === 'stopping') {
    if (job.phase === 'running') return null;
    return { done: '', step: STEPS.launch, since: job.observed === 'stopped' ? job.wanted_since : job.observed_since };
  }
  const { steps } = run;
  if (steps[QUIET] !== undefined && job.phase === 'running') return null;
  const step = ORDER.find((one) => one !== QUIET && steps[one] === undefined);
  // A driver of an earlier version tells of no step, not even that it was launched.
  if (step === undefined || (step === 'launch' && job.phase === 'running')) return null;
  if (step === 'launch') return { done: '', step: STEPS.process, since: run.since };
  return { done: stepWords(steps), step: STEPS[step], since: after(run.since, steps) };
}

/** The lease was taken when the launch was over. */
function after(since: string | null, steps: Seconds): string | null {
  if (since === null) return null;
  const seconds = Object.values(steps).reduce((sum, one) => sum + one, 0) - (steps.launch ?? 0);
  return new Date(Date.parse(since) + seconds * 1000).toISOString();
}

/** Such as "Last restart, with a warm driver: 3.1 s (launch 0.4 s, process 0.9 s)"; null before the first batch. */
export function lastStartWords({ last_start: start }: Parts): string | null {
  if (start === null) return null;
  const driver = start.warm ? ', with a warm driver' : '';
  return `Last ${start.cause}${driver}: ${formatDuration(start.seconds * 1000)} (${stepWords(start.steps)})`;
}
