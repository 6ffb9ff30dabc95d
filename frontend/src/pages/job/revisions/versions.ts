/** A job's versions, newest first: what each changed, when, and who did it. */
import type { Page } from '../../../api/pages';
import type { Event, Job, Revision } from '../../../api/types';
import { changesBetween, type Definition, type FieldChange } from '../change/definition';

export interface Version {
  version: number;
  definition: Definition;
  isCurrent: boolean;
  /** When it was made, and by whom; null where that is not known any more. */
  since: string | null;
  actorId: string | null;
  /** What it changed of the version before; empty for the first. */
  changes: FieldChange[];
  /** What was written down of it, which also tells of changed streams. */
  message: string | null;
}

const isOf = (event: Event, version: number): boolean =>
  event.kind === 'job.changed' && event.data.version === version;

/**
 * A revision is what a job was before a change; versions in between, of which earlier releases made one for each restart, change nothing.
 *
 * @param revisions as the API lists them, newest first; `has_more` where there are older ones.
 */
export function versionsOf(job: Job, revisions: Page<Revision>, events: Event[]): Version[] {
  const rows = [...revisions.data].sort((one, other) => one.version - other.version);
  const created = events.find(({ kind }) => kind === 'job.created');
  const versions = [...rows, job].map((definition, place): Version => {
    const before = rows[place - 1];
    const made = before === undefined ? created : events.find((event) => isOf(event, before.version + 1));
    const isFirst = before === undefined;
    return {
      version: definition.version,
      definition,
      isCurrent: definition === job,
      since: isFirst ? (revisions.has_more ? null : job.created_at) : before.until,
      actorId: made?.actor_id ?? null,
      changes: isFirst ? [] : changesBetween(before, definition),
      message: made?.message ?? null,
    };
  });
  return versions.reverse();
}

/** Such as "run.slots, query"; of what is in no definition, what was written down. */
export function changedWords({ changes, message }: Version): string {
  if (changes.length > 0) return changes.map(({ field }) => field).join(', ');
  return message === null ? '' : message.replace(/^job .* was changed: /, '');
}
