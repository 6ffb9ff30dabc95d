/** Where a stream comes from, in a few words, out of its entry. */
import type { Stream } from '../../api/types';

const text = (value: unknown): string | null =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null;

export const sourceOf = ({ spec }: Pick<Stream, 'spec'>): string => text(spec.source) ?? '';

export function placeOf({ spec }: Pick<Stream, 'spec'>): string {
  const place = text(spec.topic) ?? text(spec.path) ?? text(spec.kind) ?? '';
  const rate = text(spec.rate);
  return rate === null ? place : `${place} at ${rate}`;
}

export const timeOf = ({ spec }: Pick<Stream, 'spec'>): string => text(spec.time) ?? '–';

export const delayOf = ({ spec }: Pick<Stream, 'spec'>): string => text(spec.delay) ?? 'none';
