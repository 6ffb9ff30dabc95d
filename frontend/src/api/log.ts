/** A log that is read again and again: the API gives its end, and what came before that is kept here. */

export interface FollowedLog {
  text: string;
  /** More was written between two looks than the API gives at once. */
  hasGap: boolean;
}

/** How much of its end tells where the last look ended: much, since a failure that repeats writes the same again. */
const MARKS = [65_536, 16_384, 4_096];
/** A page keeps no more; the oldest lines go. */
const KEPT_MAX = 2_000_000;

/** Where what is new begins in `now`; null where the end of what is known is not in it. */
function placeOfNews(known: string, now: string): number | null {
  if (now.startsWith(known)) return known.length;
  for (const length of MARKS) {
    const mark = known.slice(-length);
    const place = now.lastIndexOf(mark);
    if (place >= 0) return place + mark.length;
  }
  return null;
}

export function grown(known: FollowedLog | undefined, now: string): FollowedLog {
  if (known === undefined || known.text === '') return { text: now, hasGap: false };
  const place = placeOfNews(known.text, now);
  // The log was begun anew, or it ran away.
  if (place === null) return { text: now, hasGap: now !== '' };
  if (place === now.length) return known;
  const text = known.text + now.slice(place);
  if (text.length <= KEPT_MAX) return { ...known, text };
  return { ...known, text: text.slice(text.indexOf('\n', text.length - KEPT_MAX) + 1) };
}
