/** Whether a job would hold its last groups back, since all of its streams end and it does not end with them. */
import type { Stream } from '../../api/types';
import { groupsWait } from '../job/heldBack';
import type { JoinDraft } from './draft';
import { streamsOf } from './streamsOf';

export const UNTIL_END = 'run.until_end';

const OF_FILES = new Set(['csv', 'jsonl', 'parquet', 'arrow']);
/** A folder has no ending, and more files may come to a pattern. */
const ONE_FILE = /^[^*?[\]]*\.\w+$/;

function ends({ spec }: Pick<Stream, 'spec'>): boolean {
  if (spec.source === 'generator') return typeof spec.rows === 'number';
  const { source, path } = spec;
  return typeof source === 'string' && OF_FILES.has(source) && typeof path === 'string' && ONE_FILE.test(path);
}

export function holdsGroupsBack({ query, fields }: Pick<JoinDraft, 'query' | 'fields'>, streams: Stream[]): boolean {
  if (!groupsWait(query) || fields[UNTIL_END] === 'true') return false;
  const named = new Set(streamsOf(query, streams.map(({ name }) => name)));
  return named.size > 0 && streams.every((stream) => !named.has(stream.name) || ends(stream));
}
